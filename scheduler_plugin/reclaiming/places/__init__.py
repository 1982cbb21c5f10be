"""Placements: where a pod with devices would fit, from watched nodes, pods and ResourceSlices.

`stock` is the inventory: `nodes` keeps the nodes with the sums of their pods' requests,
`offered_devices` the devices of ResourceSlices (`published_slices`), `answers` the results of CEL
selectors. `seekers` reads what a pod needs, and `places` says whether a node fits it.
`supply` finds nodes for the heads of one cycle. Start reading at `places`.
"""
