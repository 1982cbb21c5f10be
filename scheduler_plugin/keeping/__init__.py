"""The cleanup of claims, PodGroups and Queues: what is stale, and what ends it.

In comes the world as it is; out comes what a claim needs next (`upkeep`). An owner ends, an orphan
gets an owner, left-overs of bindings are cleared (`leftovers`), foreign pods are evicted after
owner exit (`leaving`). `stale_gangs` decides about PodGroups that lost pods, `charged_queues` about
Queues that must not go. The binder, and `cluster`, carry it out. Start reading at `upkeep`.
"""
