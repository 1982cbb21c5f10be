"""What all rooms use to reach the outside, and that decides nothing about devices.

The kinds of objects and writes of the API server (`apiserver`), the loop under every decision that
is carried out (`apiserver_passes`), files that are replaced whole (`disk`), the kubelet's sockets,
and figures (`prometheus`).
"""
