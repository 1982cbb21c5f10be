"""The opcua handler: which OPC UA servers a Configuration's Discovery URLs lead to.

details ──URLs──► servers ──applications──► applications ──filters──► servers ──► lists of devices

`servers` asks a Discovery URL which servers it knows, and whether each of them answers.
`applications` filters them and makes devices. The client is asyncua's; `bounded_channel` limits
what it reads from an untrusted server.
Start reading at `handler`.
"""
