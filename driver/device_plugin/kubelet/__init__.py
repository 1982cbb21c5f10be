"""The kubelet's side of the device plugins: its calls, its lists, and its pod-resources listing.

The input is the kubelet's calls (`plugin_service`, one socket for each resource: `device_plugins`,
`endpoints`, `registrations`) and its listing of what containers have (`listings`). The output is
answers (`allocations`) and slots that follow the use (`usage`). `slots` makes the decisions.
Start reading at `allocations`.
"""
