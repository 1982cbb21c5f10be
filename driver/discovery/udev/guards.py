"""Guards: paths of the host that exist only as long as one particular device is present.

The guard is a mount of the container, and the runtime starts no container whose mount is missing.
So a container that restarts while no driver runs gets its device, or does not start.

    /dev/disk/by-diskseq/9   a disk, until it is unplugged or gets another medium; udevd's link,
                             made of the kernel's count of media
    /dev/bus/usb/001/007     a USB device, until it is unplugged; the kernel counts on at each plug

A device that is identified by its place has no guard: any device may be plugged in there.
"""

from __future__ import annotations

from collections.abc import Iterator

from driver.discovery.udev.rules import DeviceView, self_and_ancestors

GUARDED_IDENTITIES = frozenset({"serial", "by-id"})

_USB_NODES = "/dev/bus/usb/"


def guards_of(device: DeviceView, identity: str) -> tuple[str, ...]:
    """The guards of a device; () if its Configuration identifies it by its place.

    Args:
        device: The current state of the device.
        identity: One of `IDENTITIES`.
    """
    return tuple(_guards(device)) if identity in GUARDED_IDENTITIES else ()


def _guards(device: DeviceView) -> Iterator[str]:
    for each in self_and_ancestors(device):
        if number := (each.attribute("diskseq") or "").strip():
            link = f"/dev/disk/by-diskseq/{number}"
            if each.is_at(link):
                yield link
        node = each.node or ""
        if node.startswith(_USB_NODES):  # The hub above it stays when it is unplugged.
            if node != device.node and each.is_at(node):
                yield node
            return
