"""The order in which classes are judged.

Input: the requeued classes, and the usage of each queue. Output: one class after another, the
fairest first (`fair_order`): at each level of the tree the queue that is farthest below its share
(`queue_ranks`). Other classes leave room for a pod that has waited long enough (`aging`). Room
`classes` orders the pods of one queue. Start reading at `fair_order`.
"""
