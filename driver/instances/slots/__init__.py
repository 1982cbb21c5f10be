"""Slots: the concurrent uses that an Instance allows, and their holders.

`slots` is the view of one Instance that all decisions share; `slot_writes` are changes of slots;
`node_pods` reads what the pods of a node request and have; `lost_nodes` decides which slots of lost
nodes are released. Start reading at `slots`.
"""
