"""KAI's Queues and AccountedResources as drafts of Queues.

Room `importing` gives parsed objects; `kai_queues` makes drafts and findings of them.
`accounted_resources` says what an AccountedResource counts.
"""
