"""Preemption for guaranteed quota: the targets to evict for a pod that waits.

Input: the world, and the pods that wait. Output for each: the targets, each a claim with all of
its users, or why there are no candidates. `expected_charges` computes what a pod would be charged,
`queue_shares` what each queue has and what is guaranteed to it. Room `victims` says which pods are
protected and in which order others are evicted; room `placement` whether the pod would then find
devices and a node. The binder evicts. Start reading at `cycles`.
"""
