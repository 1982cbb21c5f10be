"""The verdict on a pod: whether it may be bound, given its claims and what they would add.

Input is a pod and the world; output is Admitted, with the charges of each queue, or Refused, with a
reason and a sentence. `cases` prepares the input, `ceilings` compares what the pod adds with limits
and quotas, room `rules` has the rules, `gangs` judges pods of a PodGroup together. Start reading at
`verdicts.judge`.
"""
