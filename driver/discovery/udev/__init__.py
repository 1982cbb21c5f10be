"""The udev handler: which devices of this node the rules of a Configuration select.

netlink_watch ──► sysfs ──► devices ──rules──► handler_subscriptions ──► lists of devices

`details` and `grammar` read a Configuration's rules, `rules` matches them as udevd does,
`devices` groups what matches and `identity` says which device is the same as before. `doubts` says
of which devices udevd's database is out of date, and `guards` what lasts no longer than a device.
`netlink` and `sysfs` ask the kernel and udevd, in this process: the only handler that has no
network.
Start reading at `handler`.
"""
