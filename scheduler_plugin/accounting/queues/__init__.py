"""The tree of queues, sums along it, and which queue a pod has.

Input is Queues, pods, PodGroups and namespaces; output is the ancestors of a queue and the settings
that it inherits (`queues`), sums for each queue and its ancestors (`totals`), and a pod's queue as
far as it is known (`pod_queues`). Start reading at `queues`.
"""
