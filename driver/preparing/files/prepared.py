"""Prepared claims: the devices that this node has granted to ResourceClaims.

Planning (`claims`), CDI files (`cdi`) and `records` share these types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver.api import ClaimUid, ConfigurationName, DeviceName, InstanceName
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount
from driver.names import attribute_value, device_trace, is_pool_of

VERSION = 1
"""The version of the records that this driver writes, see `records`."""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """Identifies a ResourceClaim. A replaced claim has the same name and another UID."""

    namespace: str
    name: str
    uid: ClaimUid

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (UID {self.uid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """One of a claim's `status.allocation.devices.results`: a device, or a share of it.

    Attributes:
        request: The request of the claim; for a prioritized list the parent request, whose name
            containers and the kubelet use.
        share_id: Set if the device allows several allocations; a claim may have one device
            several times with different ids.
        admin_access: Access for monitoring, beside the users of the device.
        config: The configuration of the claim and its class.
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
        """Whether two claims cannot have these devices at the same time."""
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
        cdi_name: The device's name in the claim's CDI file. It is stored, because the kubelet keeps
            it for containers that start later; a driver with another naming must not change it.
        hash: The Instance's hash, six hexadecimal digits.
        digest: Identifies the device, see `Instance.device`; "" in records of an earlier driver.
        withheld: Why no container may get it now, such as "is offline"; "" if containers may. A
            withheld device has no device nodes and mounts.
        former_paths: Its former paths on the host. Containers that started before may hold them.
        nodes: Identifies its device nodes, see `driver.instances.rivals`; a withheld device keeps
            its former ones. Empty in records of an earlier driver.
        capacity: Concurrent uses of its Instance; 1 in records of an earlier driver.
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
    former_paths: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    capacity: int = 1

    @property
    def configuration(self) -> ConfigurationName:
        """The Configuration of its Instance."""
        return ConfigurationName(self.instance.rpartition("-")[0])

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its device nodes on the host."""
        return tuple(spec.host_path for spec in self.device_specs)

    @property
    def held(self) -> Collection[str]:
        """Identifies the device nodes that containers may hold; at least by their paths."""
        return self.nodes or self.paths or self.former_paths

    @property
    def is_shareable(self) -> bool:
        """Whether other claims may have the device at the same time.

        A record of an earlier driver shows that only by its share id. Otherwise a share id with a
        capacity of 1 means that the device had more slots before.
        """
        is_recorded = bool(self.nodes)
        return self.capacity > 1 or (not is_recorded and self.allocated.share_id is not None)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a claim was prepared; "" if an earlier driver did not store it.

    Attributes:
        node: UID of the Node object, which may be created anew while containers run.
        cluster: UID of the namespace kube-system, which is as old as the cluster.
    """

    node: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedClaim:
    """A claim that is prepared on this node.

    Attributes:
        boot_id: The boot in which it was prepared; after the next boot it has no devices.
        devices: In the order of the answer to the kubelet, see `cdi`; () if only the UID of the
            claim is known.
        pod_claim: The name in the pod's spec of a claim that was made from a template; "" for other
            claims; None if its containers get no device metadata, because an earlier driver
            prepared it.
        version: The version of its record.
    """

    reference: ClaimReference
    boot_id: str
    devices: tuple[PreparedDevice, ...]
    pod_claim: str | None = None
    home: Home = Home()
    version: int = VERSION

    @property
    def allocation(self) -> frozenset[AllocatedDevice]:
        """The prepared devices of the claim's allocation, without order."""
        return frozenset(device.allocated for device in self.devices)

    @property
    def doubt(self) -> str:
        """The end of a sentence: why its record is partly unknown; "" if it is complete."""
        if self.version > VERSION:
            return f"is of version {self.version}, and this driver reads {VERSION}"
        return "" if self.devices else "is unreadable"


PreparedClaims = Mapping[ClaimUid, PreparedClaim]


def lost_claim(uid: ClaimUid, boot_id: str, version: int = VERSION) -> PreparedClaim:
    """A claim whose devices are unknown."""
    reference = ClaimReference("", "", uid)
    return PreparedClaim(reference=reference, boot_id=boot_id, devices=(), version=version)


def prepared_homes(claims: Iterable[PreparedClaim], node: str) -> Mapping[str, str]:
    """The pools of a node whose devices claims have, by device trace, see `local_pools`."""
    devices = (d for claim in claims for d in claim.devices if is_pool_of(node, d.allocated.pool))
    return {trace: device.allocated.pool for device in devices for trace in _traces(device)}


def _traces(device: PreparedDevice) -> Iterator[str]:
    yield attribute_value(device.instance)
    if device.digest:
        yield device_trace(device.configuration, device.digest)
