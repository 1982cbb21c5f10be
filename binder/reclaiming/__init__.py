"""Quota is guaranteed: who was chosen is evicted, and what was taken is held for whom it is.

In come pods that wait; who has to go is the scheduler plugin's decision, from what is read when it
is needed (`apiserver_evidence`, `apiserver_device_wants`). Out go evictions and the condition of
the waiting pod (`apiserver_reclaim_writes`). Start reading at `apiserver_reclaims`.
"""
