"""What programs are told: metrics (`prometheus_figures`, `prometheus_server`), and readiness.

The kubelet's probe is `ready_main`, which asks this very process at a socket of its own
(`ready_socket`).
"""
