"""The cleanup of claims, PodGroups and Queues: what is stale, and what ends it.

In comes the world as it is; out comes what a claim needs next (`upkeep`): the end of an owner, an
owner for an orphan and the clearing of what bindings left (`leftovers`), and the eviction of
foreign pods some time after the owner's last one (`leaving`). `charged_queues` decides which Queues
must not go, `shared_claims` and `unattributed_pods` what people should look at. The binder
carries it out. Start reading at `upkeep`.
"""
