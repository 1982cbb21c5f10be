"""May this pod be bound: for each of its claims, and for what all of them would add.

In come a pod and the world; out comes Admitted with what is charged to whom, or Refused with a
reason and a sentence. `cases` gathers how each claim stands, `ceilings` holds the sum against
limits and quotas, room `rules` has the rules. Start reading at `verdicts.judge`.
"""
