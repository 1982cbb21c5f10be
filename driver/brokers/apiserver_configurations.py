"""What Configurations want, and their devices, as the API server has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.api import ConfigurationName, InstanceName
from driver.brokers.counts import Count, Counts
from driver.brokers.devices import Device, device
from driver.brokers.workloads import Wanted, wanted
from driver.instances.cluster_instances import BY_CONFIGURATION, ClusterInstances
from driver.instances.unseen_instances import ObservedInstance
from driver.names import label_value
from driver.offer_paths import OfferPath
from kube.calls.api import ApiClient
from kube.kinds import CONFIGURATIONS
from kube.stores.api import Added, Change, Deleted, Store


class WantedBrokers:
    """Configurations and Instances; objects are named by values of labels, which may be cut.

    Attributes:
        configurations: What each of them wants.
        instances: All Instances; the caller runs their store.
    """

    def __init__(self, client: ApiClient, instances: ClusterInstances) -> None:
        self.configurations: Store[Wanted] = Store(
            client,
            CONFIGURATIONS.select(),
            wanted,
            indexes={"label": lambda found: (f"{found.namespace}/{label_value(found.name)}",)},
        )
        self.instances = instances
        self._names: dict[tuple[str, str], InstanceName] = {}
        self._counts = Counts()

    async def synced(self) -> None:
        """Wait until all Configurations and Instances are known."""
        await self.configurations.synced.wait()
        await self.instances.store.synced.wait()

    def note(self, change: Change[ObservedInstance]) -> None:
        """Remember the name of an Instance, and count it; to be called with each change."""
        before = None if isinstance(change, Added) else self._device(change.old)
        self._counts.note(before, None if isinstance(change, Deleted) else self._device(change.new))
        key = change.key.namespace, label_value(change.key.name)
        if isinstance(change, Deleted):
            self._names.pop(key, None)
        else:
            self._names[key] = InstanceName(change.key.name)

    def device(self, namespace: str, label: str) -> Device | None:
        """The device of an Instance; None if it does not exist, or is being deleted."""
        name = self._names.get((namespace, label))
        observed = self.instances.store.get(name, namespace) if name else None
        return self._device(observed) if observed else None

    def count(self, namespace: str, configuration: ConfigurationName) -> Count:
        """The devices of a Configuration in numbers."""
        return self._counts.of(namespace, configuration)

    def labels(self, namespace: str, configuration: ConfigurationName) -> Iterator[str]:
        """The Instances of a Configuration."""
        return (label_value(o.slots.name) for o in self._observed(namespace, configuration))

    def by_label(self, namespace: str, label: str) -> Wanted | None:
        """What the Configuration with this label's value says; None if it does not exist."""
        return next(iter(self.configurations.by_index("label", f"{namespace}/{label}")), None)

    def _observed(
        self, namespace: str, configuration: ConfigurationName
    ) -> Iterable[ObservedInstance]:
        found = self.instances.store.by_index(BY_CONFIGURATION, configuration)
        return (observed for observed in found if observed.slots.namespace == namespace)

    def _device(self, observed: ObservedInstance) -> Device | None:
        return device(observed, is_dra=self.instances.path is OfferPath.DRA)
