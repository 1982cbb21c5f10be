"""Prepared claims: what this node has granted, and to which ResourceClaim.

The values that planning (`claims`), CDI files (`cdi`) and `records` share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver.api import ClaimUid, ConfigurationName, DeviceName, InstanceName
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount
from driver.names import attribute_value, device_trace, is_pool_of

VERSION = 1
"""Of the records that this driver writes, see `records`."""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """Which ResourceClaim is meant. A claim that was replaced keeps its name, not its UID."""

    namespace: str
    name: str
    uid: ClaimUid

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (UID {self.uid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """One of a claim's `status.allocation.devices.results`: a device, or a share of it.

    Attributes:
        request: The request of the claim; of a prioritized list the parent, which is the name
            that containers and the kubelet use.
        share_id: Set where the device allows several allocations; one device may be in a claim
            several times, under different ones.
        admin_access: Access for monitoring, beside whoever uses the device.
        config: What the claim and its class ask of it.
    """

    request: str
    pool: str
    device: DeviceName
    share_id: str | None = None
    admin_access: bool = False
    config: DeviceConfig = NOTHING_ASKED

    def __str__(self) -> str:
        return f"{self.pool}/{self.device}"

    def excludes(self, other: AllocatedDevice) -> bool:
        """Whether two claims can never have these at one time."""
        return (
            self._is_of(other)
            and not (self.admin_access or other.admin_access)
            and (self.share_id is None or other.share_id is None)
        )

    def _is_of(self, other: AllocatedDevice) -> bool:
        """Whether it is the same device, which may have had another pool before."""
        return self.device == other.device and (
            is_pool_of(self.pool, other.pool) or is_pool_of(other.pool, self.pool)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """An allocated device together with what its container gets.

    Attributes:
        cdi_name: The device's name in the claim's CDI file. Kept, since the kubelet remembers it
            for containers that start later; a driver that names devices otherwise must not
            rename those.
        hash: The Instance's, six hexadecimal digits.
        digest: Which device it is, see `Instance.device`; "" in what an earlier driver wrote.
        withheld: Why no container may be given it now, as in "is offline"; "" if one may. It has
            no device nodes and mounts meanwhile.
        left: Paths of the host where it was before. Containers that started then may hold them.
        nodes: What tells its device nodes, see `driver.instances.rivals`; of a device that is
            withheld those that it had. None in what an earlier driver wrote.
        capacity: Its Instance's, uses at one time; 1 in what an earlier driver wrote.
    """

    allocated: AllocatedDevice
    cdi_name: str
    instance: InstanceName
    hash: str
    properties: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    digest: str = ""
    withheld: str = ""
    left: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    capacity: int = 1

    @property
    def configuration(self) -> ConfigurationName:
        """What its Instance is of."""
        return ConfigurationName(self.instance.rpartition("-")[0])

    @property
    def paths(self) -> tuple[str, ...]:
        """Where on the host its device nodes are."""
        return tuple(spec.host_path for spec in self.device_specs)

    @property
    def held(self) -> Collection[str]:
        """What tells the device nodes that containers may hold; at the least their paths."""
        return self.nodes or self.paths or self.left

    @property
    def is_shareable(self) -> bool:
        """Whether others may have the device at the same time.

        What an earlier driver wrote tells it by a share only. With a capacity of 1 a share is all
        that there is: the device had more slots before.
        """
        is_told = bool(self.nodes)
        return self.capacity > 1 or (not is_told and self.allocated.share_id is not None)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a claim was prepared, by UIDs; "" where an earlier driver did not write them.

    Attributes:
        node: Of the Node object, which may be made anew under running containers.
        cluster: Of the namespace kube-system, which is as old as the cluster.
    """

    node: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedClaim:
    """A claim that is prepared on this node.

    Attributes:
        boot_id: The boot in which it was prepared; in the next one it holds nothing.
        devices: In the order in which the kubelet is told, see `cdi`; none if all that is known of
            the claim is its UID.
        pod_claim: What its pod calls a claim that was made of a template; "" for one that was not;
            None if its containers get no device metadata, as an earlier driver prepared it.
        version: Of its record.
    """

    reference: ClaimReference
    boot_id: str
    devices: tuple[PreparedDevice, ...]
    pod_claim: str | None = None
    home: Home = Home()
    version: int = VERSION

    @property
    def allocation(self) -> frozenset[AllocatedDevice]:
        """What of the claim's allocation this prepares, in no order."""
        return frozenset(device.allocated for device in self.devices)

    @property
    def doubt(self) -> str:
        """Why not all that it holds is known, as the end of a sentence; "" if all is."""
        if self.version > VERSION:
            return f"is of version {self.version}, and this driver reads {VERSION}"
        return "" if self.devices else "is unreadable"


PreparedClaims = Mapping[ClaimUid, PreparedClaim]


def lost_claim(uid: ClaimUid, boot_id: str, version: int = VERSION) -> PreparedClaim:
    """A claim whose devices are not known."""
    reference = ClaimReference("", "", uid)
    return PreparedClaim(reference=reference, boot_id=boot_id, devices=(), version=version)


def prepared_homes(claims: Iterable[PreparedClaim], node: str) -> Mapping[str, str]:
    """A node's pools out of which claims have devices, by what tells each, see `local_pools`."""
    devices = (d for claim in claims for d in claim.devices if is_pool_of(node, d.allocated.pool))
    return {trace: device.allocated.pool for device in devices for trace in _traces(device)}


def _traces(device: PreparedDevice) -> Iterator[str]:
    yield attribute_value(device.instance)
    if device.digest:
        yield device_trace(device.configuration, device.digest)
