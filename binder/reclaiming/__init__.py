"""Quota is guaranteed: who was chosen is evicted, and what was taken is held for whom it is.

In come pods that wait; who has to go is the scheduler plugin's decision, by what is watched anyway
(`apiserver_supplies`). Out go evictions (`apiserver_takes`) and the conditions of the waiting pods
(`apiserver_holds`, `apiserver_misses`). Start reading at `apiserver_reclaims`.
"""
