"""Slots: the uses that an Instance allows at one time, and who has them.

`slots` is the view of one Instance that all decisions share; `node_pods` says what the pods of a
node ask for and have, and `lost_nodes` which slots of nodes that are gone come back.
Start reading at `slots`.
"""
