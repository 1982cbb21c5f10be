"""Evictions: all pods of a set, or none of them.

`apiserver_evictions` asks, and evicts; `disruption_budgets` says which pods may go together.
"""
