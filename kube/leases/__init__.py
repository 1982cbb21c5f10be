"""Leases: who holds one and for how long (`leases`), and the election on it (`apiserver_leases`).

Clocks of different hosts are never compared.
"""
