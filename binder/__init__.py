"""The binder: writes who owns a claim, binds the pod, and keeps claims in order around that.

    request ──► who owns it (pure) ─patch─► claim ──► binding (pure) ─create─► pod
                                            claim ◄── take back, where the pod was not bound
    changed claim ──► what next? (scheduler_plugin.keeping) ──► controller ─patch─► claim
                                                                   └──evict──► foreign pods
    pods that wait ──► who goes? (scheduler_plugin.waiting) ──► gates ─patch─► pods

All that the scheduler side writes stands here, and it decides nothing. Room `keeping` looks after
claims that changed, room `reclaiming` after pods that lack what their quota guarantees, room
`gates` after pods that wait, room `queues` after Queues. Each write names the UID of what it was
decided on, so that it happens to that or not at all; whatever is done twice is done once.
"""
