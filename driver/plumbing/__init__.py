"""The driver's access to the outside, which all rooms use. It decides nothing about devices.

Writes to the API server (`apiserver`), reconcilers (`apiserver_reconcilers`), atomically replaced
files (`disk`) and a lock between processes (`disk_lock`), the sockets that the kubelet calls
(`kubelet_sockets`) and channels to other sockets (`kubelet_channels`), and metrics (`prometheus`).
"""
