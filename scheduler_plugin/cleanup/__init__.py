"""The cleanup of claims, PodGroups and Queues: what is stale, and what ends it.

Input is the world; output is the next step for a claim (`claim_cleanup`): the removal of a stale
owner, an owner for an orphan, the removal of stale consumers and allocations (`stale_claims`),
and the eviction of foreign pods after owner exit (`owner_exits`). `stale_gangs` does the same for
PodGroups with too few pods. `charged_queues` decides which Queues carry the finalizer,
`shared_claims` and `unattributed_pods` which Events users get. The binder carries the steps
out. Start reading at `claim_cleanup`.
"""
