"""Discovery: each handler turns discovery details into the current list of devices.

Each protocol has a room (`udev`, `onvif`, `opcua`, `debug_echo`) with its details, its devices and
its handler. The rooms share how `details` and `filters` are read, which addresses from the network
are contacted (`reach`), and the discovery cycles of handlers that poll the network
(`handler_turns`). `contract` defines a handler. Start reading at `handlers`, which knows all four
by name.
"""
