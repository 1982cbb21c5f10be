"""Who uses what, who of them is protected, and in which order they may be asked to go.

In come the world and whom something is lacking to; out come sets of a claim with all its users
(`victims`), those of the queues farthest over their shares first (`candidates`), and what an
eviction frees and whose quota it would touch (`effects`). Start reading at `candidates`.
"""
