"""The tree of queues, sums along it, and which queue a pod has.

In come Queues and what pods, their PodGroups and namespaces say; out come who stands above whom and
what a queue inherits (`queues`), sums for each queue and all above it (`totals`), and a pod's queue
as far as it is known (`pod_queues`). Start reading at `queues`.
"""
