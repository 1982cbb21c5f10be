"""The onvif handler: which cameras of the network a Configuration selects, and what they say.

ws_discovery_client ──addresses──► camera_places ──► cameras ──facts──► devices ──► lists of devices

`ws_discovery_client` sends probes and receives answers, `camera_places` says which addresses may be
contacted, `cameras` asks a camera for its facts over `http_carrier`, with the `credentials` of a
Configuration. `devices` makes one device of each camera, and chooses between two cameras with one
identity. Everything from the network is limited in size before it is read. Start reading at
`handler`.
"""
