"""The udev handler: which devices of this node the rules of a Configuration select.

netlink_watch ──► sysfs ──► devices ──rules──► handler_subscriptions ──► lists of devices

`details` and `grammar` parse a Configuration's rules, and `rules` matches them as udevd does.
`devices` groups the matching devices, and `identity` recognizes a device that was plugged in again.
`doubts` tracks the devices whose entries in udevd's database may be outdated. `guards` names paths
that exist only as long as a device. `netlink` and `sysfs` read from the kernel and udevd. Start
reading at `handler`.
"""
