"""Evictions: all pods of a set, or none of them.

`apiserver_evictions` does the dry run and evicts. `disruption_budgets` says which pods may be
evicted together.
"""
