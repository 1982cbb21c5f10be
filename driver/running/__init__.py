"""What runs: the processes of the driver, built from the other rooms, and what they tell people.

It decides which parts a process has, and nothing about devices. In come the command line and the
environment (`settings`, `arguments`); a room each for a node's driver (`node`), the elected one
(`shared`), what programs are told (`monitoring`) and `moorage-driver from-akri` (`from_akri`).
`handler_main` runs one handler, `permissions_main` prints roles. Start reading at `node.node_main`.
"""
