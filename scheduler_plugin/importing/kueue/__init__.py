"""Kueue's ClusterQueues, Cohorts and LocalQueues as drafts of Queues.

Room `importing` gives parsed objects; `kueue_queues` makes drafts and findings of them. `resources`
says what a resource of Kueue's counts, `quotas` reads resource groups, `cohorts` adds them up along
the tree, `namespaces` says who may use a queue, and `reasons` why a field has no counterpart.
"""
