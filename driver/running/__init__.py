"""What runs: the processes of the driver, built from the other rooms, and what they tell people.

It decides which parts a process has, and nothing about devices. In come the command line and the
environment (`settings`); out go a node's driver (`node_main`, `node_cluster`), the
elected one (`shared_main`, `shared_cluster`), one handler (`handler_main`), figures
(`prometheus_figures`, `prometheus_server`) and the status of Configurations
(`cluster_configurations`, `node_handlers`).
Start reading at `node_main`.
"""
