"""The processes of the driver, built from the other rooms.

It decides which parts a process has, and nothing about devices. The input is the command line and
the environment (`settings`, `node_settings`, `common_settings`; `flag_arguments` and `arguments`
parse them). A room each has the driver of a node (`node`), the elected driver (`shared`), metrics
and readiness (`monitoring`), and `moorage-driver from-akri` (`from_akri`). `handler_main` runs one
discovery handler, and `permissions_main` prints Roles. Start reading at `node.node_main`.
"""
