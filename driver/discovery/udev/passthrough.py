"""What a virtual machine needs to take over a device, as KubeVirt asks for it.

Akri's names: `USB_RESOURCE_<NAME>=<bus>:<device>` for the nodes of USB devices, or
`PCI_RESOURCE_<NAME>=<address>`, where NAME is the resource by which the virtual machine names the
device; and the nodes of the device's VFIO group. Asked for by two of a Configuration's
`discoveryProperties`, since what one asks for is not a matter of which devices are found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver.devices import DeviceSpec

RESOURCE_PROPERTY = "devicePluginResourceName"
VFIO_PROPERTY = "vfioPassthrough"

VFIO_PERMISSIONS = "rwm"

_RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,315}[A-Za-z0-9])?")
_USB_NODE = re.compile(r"/dev/bus/usb/(?:.*/)?([0-9]{1,9})/([0-9]{1,9})")
_PCI_ADDRESS = re.compile(r"[0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+\.[0-9a-fA-F]+")
_NAME = str.maketrans("./", "__")


@dataclass(frozen=True, slots=True)
class Passthrough:
    """What is asked for.

    Attributes:
        resource: Name of a resource; without one there is nothing to do.
        vfio: Whether PCI devices come with the nodes of their VFIO group.
    """

    resource: str | None = None
    vfio: bool = False

    def usb(self, node: str) -> dict[str, str]:
        """Environment for a device node."""
        found = _USB_NODE.fullmatch(node)
        if self.resource is None or found is None:
            return {}
        return {f"USB_RESOURCE_{self._name}": f"{int(found[1])}:{int(found[2])}"}

    def pci(self, path: str) -> dict[str, str]:
        """Environment for a device, which is told by its path in sysfs."""
        address = pci_address(path)
        if self.resource is None or address is None:
            return {}
        return {f"PCI_RESOURCE_{self._name}": address}

    def specs(self, path: str, iommu_group: str | None) -> tuple[DeviceSpec, ...]:
        """Device nodes for a device, which is told by its path in sysfs.

        Args:
            path: Of the device.
            iommu_group: Name of its group, a number; None where it has none.
        """
        if not self.vfio or iommu_group is None or not self.pci(path):
            return ()
        nodes = (f"/dev/vfio/{iommu_group}", "/dev/vfio/vfio")
        return tuple(DeviceSpec(node, node, VFIO_PERMISSIONS) for node in nodes)

    @property
    def _name(self) -> str:
        return (self.resource or "").translate(_NAME).upper()


NO_PASSTHROUGH = Passthrough()


def passthrough_of(properties: Mapping[str, bytes | None]) -> Passthrough:
    """What `discoveryProperties` ask for; a resource's name that is none counts as absent."""
    resource = _text(properties.get(RESOURCE_PROPERTY))
    vfio = _text(properties.get(VFIO_PROPERTY)).lower() == "true"
    return Passthrough(resource if _RESOURCE.fullmatch(resource) else None, vfio)


def pci_address(path: str) -> str | None:
    """The address of the PCI device that a path in sysfs leads through last.

    None for what hangs on a USB controller: it is not the controller.
    """
    parts = path.split("/")
    if any(part.startswith("usb") for part in parts):
        return None
    return next((part for part in reversed(parts) if _PCI_ADDRESS.fullmatch(part)), None)


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace").strip()
