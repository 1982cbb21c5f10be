"""Where a pod with devices would fit, from what is watched anyway: nodes, their pods, and slices.

`stock` is all of it: `nodes` keeps nodes and the sums that their pods ask for, `offered_devices`
the devices as slices publish them (`published_slices`), `answers` what CEL said of devices.
`places` says whether a pod would find devices and room on a node, `supply` where the heads of one
cycle do.
"""
