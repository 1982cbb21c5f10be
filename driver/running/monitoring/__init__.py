"""Metrics (`prometheus_figures`, `prometheus_server`) and readiness of the driver's processes.

The kubelet's probe is `ready_main`, which asks the process at a socket of its own (`ready_socket`).
"""
