"""The kubelet's side of the device plugins: what it calls, is told, and says of containers.

In come its calls (`plugin_service`, one socket for each resource: `device_plugins`,
`endpoints`) and its account of what containers have (`listings`); out go answers
(`allocations`) and slots that follow (`usage`). It decides nothing that `slots` could decide.
Start reading at `allocations`.
"""
