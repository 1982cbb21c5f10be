"""The desired state of a pool: its devices, their attributes and taints.

The input is Instances, the claims that have them, and the time as a value. The output is a
`Publication`. `next_publication` decides it, and keeps absent devices that are in use; `slices`
makes devices of Instances; `attributes` says what selectors can read; `deductions` says how many
uses the device plugin has given away; `counters` says which devices exclude each other; `groups`
says which devices share a slice; `local_pools` and `shared_pools` decide which pool has a device;
`flapping` holds devices back that come and go; `pace` limits the rate of writes.
Start reading at `publication`.
"""
