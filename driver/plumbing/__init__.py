"""What all rooms use to reach the outside, and that decides nothing about devices.

Writes of the API server (`apiserver`), the loop that carries out decisions
(`apiserver_reconcilers`), files that are replaced whole (`disk`), the kubelet's sockets, and
figures (`prometheus`).
"""
