"""Candidates for eviction: the users of devices, their protection, and the effect of eviction.

Input: the world and the preemptor. Output: victims, each a claim or a pod's own requests with all
of its users, or why they are protected (`victims`); and what an eviction releases, by queue
(`effects`). Start reading at `victims`.
"""
