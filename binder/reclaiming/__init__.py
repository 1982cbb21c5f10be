"""Preemption for guaranteed quota: targets are evicted, and what they release is held.

Input: pods that wait. The scheduler plugin decides about the targets, from watched nodes and
devices (`apiserver_placements`). Output: evictions (`apiserver_targets`), and conditions of the
waiting pods (`apiserver_holds`, `apiserver_misses`). Start reading at `apiserver_reclaims`.
"""
