"""The opcua handler: which OPC UA servers a Configuration's Discovery URLs lead to.

details ──URLs──► servers ──applications──► applications ──filters──► servers ──► lists of devices

`servers` asks a Discovery URL which servers there are and whether each is served, `applications`
filters them and makes devices. asyncua's client asks; `bounded_channel` bounds what strangers send.
Start reading at `handler`.
"""
