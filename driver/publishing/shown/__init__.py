"""What a pool shows: its devices, their attributes and taints.

In come Instances, the claims that have them, and the clock as a value; out comes a `Publication`.
`publication` keeps what went away and is in use, `slices` makes devices of Instances,
`attributes` says what selectors can read, `deductions` what the device plugin has taken already,
`counters` which devices exclude each other, `shared_pools` all that of devices that several nodes
see; `flapping` whom to wait for until it has stayed, `pace` how often a pool is written. Start
reading at `publication`.
"""
