"""Leases: the holder and the remaining time (`leases`), and leader election (`apiserver_leases`).

Clocks of different hosts are never compared.
"""
