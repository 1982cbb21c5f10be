"""Who goes next: pods at the gate, or refused without one, in fair lines.

In come pods that wait and changes of the world; out comes who may go now and what the others wait
for. Alike pods stand in one line (`lines`), the queue that is furthest under its quota goes first
(`fairness`, `rounds`), and a line that cannot go is asked again only when its blockade may have
fallen (`blockades`). Start reading at `gates`.
"""
