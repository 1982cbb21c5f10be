"""The binder: writes the owner of a claim, binds the pod, and carries out the cleanup of claims.

    request ──► owner (pure) ─patch─► claim ──► binding (pure) ─create─► pod
                                      claim ◄── owner removed, if the pod was not bound
    changed claim ──► next step (scheduler_plugin.cleanup) ──► controller ─patch─► claim
                                                                  └──evict──► foreign pods
    pending pods ──► admission (scheduler_plugin.waiting) ──► gates ─patch─► pods

All writes of the scheduler side are here; the binder decides nothing. Room `bindings` writes owner
labels and bindings, `cleanup` carries out the cleanup of claims and PodGroups, `reclaiming`
evictions for queues below their quota, `gates` scheduling gates and conditions, and `queues` the
status and the finalizer of Queues. Each write has the UID of the judged object as its precondition.
All writes are idempotent.
"""
