"""Discovery: each handler turns discovery details into the current list of devices.

A room for each protocol (`udev`, `onvif`, `opcua`, `debug_echo`), with its details, its devices and
its handler; beside them what they share: how details, filters and places in a text are read, which
addresses of strangers are asked (`reach`), and the turns of those that nobody tells of changes.
`contract` says what a handler is. Start reading at `handlers`, which knows all four by name.
"""
