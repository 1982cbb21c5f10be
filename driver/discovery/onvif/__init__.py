"""The onvif handler: which cameras of the network a Configuration selects, and what they say.

ws_discovery_client ──addresses──► camera_places ──► cameras ──facts──► devices ──► lists of devices

`ws_discovery_client` probes and hears, `camera_places` says who may be asked, `cameras` asks, over
`http_carrier` and with the `credentials` that a Configuration gives, and `devices` makes one device
of one camera, and says which of two with one identity it is. What strangers send is bounded before
it is read. Start reading at `handler`.
"""
