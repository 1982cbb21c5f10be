"""Placements: where a pod with devices would fit, from watched nodes, pods and ResourceSlices.

`inventory` is the inventory: `nodes` keeps the nodes with the sums of their pods' requests,
`offered_devices` the devices of ResourceSlices (`published_slices`), `answers` the results of CEL
selectors. `demands` reads what a pod needs, and `node_fit` says whether a node fits it.
`node_placements` finds nodes for the heads of one cycle. Start reading at `node_fit`.
"""
