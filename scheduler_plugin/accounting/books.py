"""The facts and the ledger, kept up to date by events of queues and the catalog.

    event ──► facts ──entries that depend on the change──► ledger

An event is the current object, or its deletion. Events may repeat, and come in any order between
kinds; an event without an effect on charges costs nothing. The books are not thread-safe. `World`
adds the decisions in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.accounting.entry_books import EntryBooks
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName, DeviceId
from scheduler_plugin.objects.devices.catalog import instances_of
from scheduler_plugin.objects.devices.device_facts import DeviceFacts, ListedDevice
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.objects.devices.resource_names import (
    LEGACY_PREFIX,
    named_by,
    resources_of_class,
)
from scheduler_plugin.objects.names import Queue, QueueName


class Books(EntryBooks):
    """The books with the events of queues, classes, Configurations, Instances and slices."""

    # The tree: an event costs as much as there is charged below the queue.

    def put_queue(self, queue: Queue) -> None:
        before = self.facts.tree.get(queue.name)
        if before == queue:
            return
        self.ledger.touch((queue.name,))
        with (
            self._defining(),
            self._listing({*queue.shares, *(before.shares if before else ())}),
        ):
            if before is not None and before.parent == queue.parent:
                self.facts.tree.put(queue)
            else:
                with self._moving(queue.name):
                    self.facts.tree.put(queue)
        if before is None or before.namespaces != queue.namespaces:
            self._recount_pods((*self.waiting.of(queue.name), *self.facts.admitted_by(queue.name)))

    def delete_queue(self, name: QueueName) -> None:
        before = self.facts.tree.get(name)
        if before is not None:
            with self._defining(), self._listing(before.shares), self._moving(name):
                self.facts.tree.remove(name)
            self._recount_pods((*self.waiting.of(name), *self.facts.admitted_by(name)))

    @contextmanager
    def _moving(self, name: QueueName) -> Iterator[None]:
        tree = self.facts.tree
        paths = {queue: tree.path(queue) for queue in tree.below(name)}
        self.ledger.touch(paths)
        try:
            yield
        finally:
            self._follow(paths)

    def _follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        """Move the sums of these queues from their old paths, the values, to their current ones."""
        self.ledger.follow(paths)

    @contextmanager
    def _listing(self, keys: Iterable[ResourceKey]) -> Iterator[None]:
        """Recount classes that are accounted since some queue lists them, or cease to be."""
        listed = {ClassName(key): self.facts.tree.lists(key) for key in sorted(keys)}
        names = [resources_of_class(key, self.facts.catalog.class_named(key)) for key in listed]
        with self._naming({name for found in names for name in found}):
            try:
                yield
            finally:
                tree = self.facts.tree
                self._recount_classes(
                    n for n, was in listed.items() if tree.lists(ResourceKey(n)) != was
                )

    @contextmanager
    def _defining(self) -> Iterator[None]:
        """Recount all claims if other definitions count from then on, which is seldom so."""
        before = frozenset(self.facts.tree.definitions)
        try:
            yield
        finally:
            if frozenset(self.facts.tree.definitions) != before:
                self._recount_claims([claim.uid for claim in self.facts.claims()])

    # The catalog: an event costs as much as uses the class or the resource.

    def put_class(self, view: ClassView) -> None:
        before = self.facts.catalog.class_named(view.name)
        if before != view:
            with self._naming(self._resources_of(before, view)), self._keying():
                self.facts.catalog.put_class(view)
                self._recount_classes(self._classes_decided_by(before, view))
            self._touch_listing(view)

    def delete_class(self, name: ClassName) -> None:
        before = self.facts.catalog.class_named(name)
        if before is not None:
            with self._naming(self._resources_of(before)), self._keying():
                self.facts.catalog.remove_class(name)
                self._recount_classes(self._classes_decided_by(before))
            self._touch_listing(before)

    def _touch_listing(self, view: ClassView) -> None:
        """Touch the queues that list a class: their status says whether a policy guards it."""
        if not view.configuration:
            key = ResourceKey(view.name)
            self.ledger.touch(queue.name for queue in self.facts.tree if key in queue.shares)

    def _classes_decided_by(
        self, before: ClassView | None, view: ClassView | None = None
    ) -> Iterable[ClassName]:
        """The classes whose claims a class decides about.

        These are the class itself and, if its label changed, all classes of claims: devices of its
        Configuration may be allocated through any of them.
        """
        if (before and before.accounted) != (view and view.accounted):
            return self.facts.classes_asked()
        return [known.name for known in (view, before) if known is not None]

    def _resources_of(self, *views: ClassView | None) -> Iterable[str]:
        """The resources that a class may be behind; an exempt one, also behind Akri's names."""
        known = [view for view in views if view is not None]
        if any(view.accounted is False for view in known):
            return list(self.facts.pods_by_resource())
        return resources_of_class(known[0].name, *known)

    def put_configuration(self, name: ResourceKey) -> None:
        """Add a Configuration of this name; call it once for each object."""
        with self._naming([f"{LEGACY_PREFIX}{name}"]):
            self.facts.catalog.put_configuration(name)

    def delete_configuration(self, name: ResourceKey) -> None:
        with self._naming([f"{LEGACY_PREFIX}{name}"]):
            self.facts.catalog.remove_configuration(name)

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Enter a DeviceTaintRule; it decides no charge."""
        self.facts.catalog.rules.put(rule)

    def delete_taint_rule(self, rule: DeviceTaintRule) -> None:
        self.facts.catalog.rules.remove(rule.name)

    def put_instance(self, instance: InstanceView) -> bool:
        """Returns whether more changed than the holders of its slots, which decide no charge."""
        before = self.facts.catalog.instance_named(instance.name)
        is_other = before is None or replace(before, held=instance.held) != instance
        if not is_other:
            self.facts.catalog.put_instance(instance)
        else:
            with self._naming(named_by(before, instance)), self._keying([instance.name]):
                self.facts.catalog.put_instance(instance)
            self._recount_claims(self.facts.claims_with_device_named(instance.name))
        return is_other

    def delete_instance(self, name: str) -> None:
        with self._naming(named_by(self.facts.catalog.instance_named(name))), self._keying([name]):
            self.facts.catalog.remove_instance(name)
        self._recount_claims(self.facts.claims_with_device_named(name))

    def put_slice(self, view: SliceView) -> bool:
        """Returns whether the cost of claims for all devices of a class changed."""
        found = self.facts.catalog.slice_named(view.name)
        if found == view:
            return False
        before = self._asked_whole()
        changed = instances_of(found) ^ instances_of(view)
        with self._keying(name for _, name in changed):
            self.facts.catalog.put_slice(view)
        return self._recount_listed(before, found, view)

    def delete_slice(self, name: str) -> bool:
        """Returns whether the cost of claims for all devices of a class changed."""
        before = self._asked_whole()
        found = self.facts.catalog.slice_named(name)
        instances = (instance for _, instance in instances_of(found))
        with self._keying(instances):
            self.facts.catalog.remove_slice(name)
        return self._recount_listed(before, found)

    def _recount_listed(self, before: dict[ClassName, int], *views: SliceView | None) -> bool:
        """Recount after a slice changed; returns whether the cost of requests may have changed."""
        self._recount_devices(*views)
        is_measured = self._recount_requests(*views)
        return self._published(before) or is_measured

    def _recount_devices(self, *views: SliceView | None) -> None:
        """Recount the claims that have a device which these views list differently."""
        changed = set[tuple[DeviceId, ResourceKey] | ListedDevice]()
        for view in filter(None, views):
            changed ^= set(view.configurations)
            changed ^= {*view.devices} if self.facts.tree.definitions else set()
        for device in sorted({device for device, *_ in changed}):
            self._recount_claims([claim.uid for claim in self.facts.claims_with(device)])

    def _recount_requests(self, *views: SliceView | None) -> bool:
        """Recount claims without devices if these views list other kinds of devices."""
        if not self.facts.tree.definitions:
            return False
        changed = set[tuple[DeviceFacts, str]]()
        for view in filter(None, views):
            changed ^= {(listed.facts, listed.look) for listed in view.devices}
        if changed:
            self._recount_claims([c.uid for c in self.facts.claims() if not c.is_allocated])
        return bool(changed)

    def _asked_whole(self) -> dict[ClassName, int]:
        devices = self.facts.catalog.devices
        return {name: devices(name) for name in self.facts.classes_asked_whole()}

    def _published(self, before: dict[ClassName, int]) -> bool:
        changed = [n for n, count in before.items() if self.facts.catalog.devices(n) != count]
        for name in changed:
            self._recount_claims(self.facts.claims_asking_for_all(name))
        return bool(changed)

    @contextmanager
    def _naming(self, names: Iterable[str]) -> Iterator[None]:
        """Recount the pods that use one of these resources, if its key changes inside."""
        pods, accounted = self.facts.pods_by_resource(), self.facts.catalog.accounted_resource
        before = {name: accounted(name) for name in names if name in pods}
        try:
            yield
        finally:
            for name, key in before.items():
                if accounted(name) != key:
                    self._recount_pods(list(pods[name]))

    @contextmanager
    def _keying(self, names: Iterable[str] | None = None) -> Iterator[None]:
        """Recount the claims of these classes (None: of all), if their key changes inside."""
        asked = self.facts.claims_of_class
        known = self.facts.classes_asked() if names is None else map(ClassName, names)
        catalog = self.facts.catalog

        def keys(name: ClassName) -> tuple[ResourceKey, ResourceKey | None]:
            return catalog.key(name), catalog.accounted_key(name)

        before = {name: keys(name) for name in known if asked(name)}
        try:
            yield
        finally:
            self._recount_classes(name for name, found in before.items() if keys(name) != found)

    def _recount_classes(self, names: Iterable[ClassName]) -> None:
        for name in names:
            self._recount_claims(self.facts.claims_of_class(name))
