"""Whose turn it is: which line goes next.

In come lines and what each queue has; out come the lines that may go, the fairest first (`rounds`):
at each level of the tree the queue that is farthest below its share (`fairness`), and who has
waited for so long that others leave room for it (`aging`). Which pod of a queue is first, `lines`
says. Start reading at `rounds`.
"""
