"""The opcua handler: which OPC UA servers a Configuration's Discovery URLs lead to.

details ──URLs──► servers ──applications──► applications ──filters──► servers ──► lists of devices

`servers` asks a Discovery URL which servers there are and whether each is served, `applications`
filters them and makes devices. What strangers send is bounded before it is read.
Start reading at `handler`.
"""
