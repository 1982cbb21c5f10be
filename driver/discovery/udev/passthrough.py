"""The environment and device nodes with which KubeVirt gives a device to a virtual machine.

The names are Akri's: `USB_RESOURCE_<NAME>=<bus>:<device>` for the nodes of USB devices,
`PCI_RESOURCE_<NAME>=<address>` for PCI devices; NAME is the resource that the virtual machine
names. PCI devices also come with the nodes of their VFIO group. Two `discoveryProperties` of a
Configuration switch this on, because it does not change which devices are found.
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
    """The settings of a Configuration.

    Attributes:
        resource: Name of a resource; None switches passthrough off.
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
        """Environment for a device, by its path in sysfs."""
        address = pci_address(path)
        if self.resource is None or address is None:
            return {}
        return {f"PCI_RESOURCE_{self._name}": address}

    def specs(self, path: str, iommu_group: str | None) -> tuple[DeviceSpec, ...]:
        """VFIO device nodes for a device.

        Args:
            path: The device's path in sysfs.
            iommu_group: The name of its IOMMU group, a number; None if it has none.
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
