"""The cluster as the rules see it: stores, and direct reads of objects that no store has yet.

The next request of the same `kubectl apply` may refer to an object that the watch has not brought
yet. So an object that a store lacks is read directly once: see `lookups`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar

from kube.backoff import Backoff
from kube.calls.api import ApiClient, ApiError, NotFoundError
from kube.kinds import CLAIMS, CLASSES, CONFIGURATIONS, INSTANCES, NAMESPACES, QUEUES, TEMPLATES
from kube.resources import ObjectPath, Resource
from kube.stores.api import Change, Deleted, Modified, Store
from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.objects.api import (
    Catalog,
    ClaimTemplateView,
    ClaimView,
    InstanceView,
    NamespaceView,
    claim_template_view,
    claim_view,
    class_view,
    instance_view,
    namespace_view,
    parse_queue,
)
from scheduler_plugin.objects.names import AccountingSettings, QueueName
from webhook.lookups import Lookups
from webhook.rules.configurations import configuration_view, handler_reports
from webhook.rules.rule_context import PodSettings, RuleContext

logger = logging.getLogger(__name__)

BY_NAME = "name"
BY_CONFIGURATION = "configuration"

READ_SECONDS = 2.0
"""Time-out of one read: well below the API server's time-out of a webhook."""

ABSENT_SECONDS = 60.0
"""How often to ask for a resource that the API server does not serve yet."""

BACKOFF = Backoff()
"""Delay after an error of that question."""

T = TypeVar("T")


class Cluster:
    """All objects that the rules need; complete once `why_not_ready` returns ""."""

    def __init__(
        self, client: ApiClient, settings: AccountingSettings, about_pods: PodSettings
    ) -> None:
        self._client = client
        self._settings = settings
        self._read_claim = partial(claim_view, queue_label=settings.queue_label)
        read_template = partial(claim_template_view, queue_label=settings.queue_label)
        self._queues = Store(client, QUEUES.select(), parse_queue)
        self._namespaces = Store(client, NAMESPACES.select(), namespace_view)
        self._claims = Store(client, CLAIMS.select(), self._read_claim)
        self._templates = Store(client, TEMPLATES.select(), read_template)
        self._classes = Store(client, CLASSES.select(), class_view)
        self.configurations = Store(
            client,
            CONFIGURATIONS.select(),
            configuration_view,
            indexes={BY_NAME: lambda view: (view.name,)},
        )
        self.instances = Store(
            client,
            INSTANCES.select(),
            instance_view,
            indexes={BY_CONFIGURATION: lambda view: (view.configuration,)},
        )
        self._stores: Mapping[Resource, Store[Any]] = {
            QUEUES: self._queues,
            NAMESPACES: self._namespaces,
            CLAIMS: self._claims,
            TEMPLATES: self._templates,
            CLASSES: self._classes,
            CONFIGURATIONS: self.configurations,
            INSTANCES: self.instances,
        }
        self._asked = {resource: asyncio.Event() for resource in self._stores}
        self._absent: set[Resource] = set()
        self._lookups = Lookups()
        tree = QueueTree()
        self.rule_context = RuleContext(
            tree=tree,
            catalog=Catalog(tree.lists, tree.definitions),
            exists=self._exists,
            settings=settings,
            pods=about_pods,
        )
        self._subscribe()

    async def run(self) -> NoReturn:
        """Keep the stores up to date until cancelled; failures are retried without a limit."""
        async with asyncio.TaskGroup() as tasks:
            for resource in self._stores:
                tasks.create_task(self._follow(resource))
        raise AssertionError("a store ended")

    async def until_ready(self) -> None:
        """Wait until every store is filled, or its resource is known not to be served."""
        for resource, store in self._stores.items():
            await self._asked[resource].wait()
            if resource not in self._absent:
                await store.synced.wait()

    def why_not_ready(self) -> str:
        """Which stores are not filled yet, as a sentence; "" if all are."""
        waiting = [
            resource.plural
            for resource, store in self._stores.items()
            if not store.synced.is_set() and resource not in self._absent
        ]
        return f"Not read yet: {', '.join(waiting)}." if waiting else ""

    async def look_for_queue(self, name: QueueName, namespace: str = "") -> None:
        """Store the queue now, if it exists; `namespace` is that of the reviewed object."""
        if name and name not in self.rule_context.tree:
            await self._find(self._queues, QUEUES.at(name), namespace)

    async def all_queues(self) -> None:
        """Wait until all queues of this moment are stored.

        Raises:
            ApiError, TimeoutError: They cannot be read.
        """
        if not await self._queues.catch_up(READ_SECONDS):
            raise TimeoutError

    async def namespace(self, name: str) -> NamespaceView:
        """A namespace; one that does not exist counts as one without labels."""
        found = await self._find(self._namespaces, NAMESPACES.at(name), name)
        return found or NamespaceView(name, {})

    async def claim(self, namespace: str, name: str) -> ClaimView | None:
        return await self._find(self._claims, CLAIMS.at(name, namespace), namespace)

    async def template(self, namespace: str, name: str) -> ClaimTemplateView | None:
        return await self._find(self._templates, TEMPLATES.at(name, namespace), namespace)

    async def claims_of(self, queue: QueueName) -> tuple[ClaimView, ...]:
        """The claims with the queue's label, read from the API server."""
        chosen = CLAIMS.select(label_selector=f"{self._settings.queue_label}={queue}")
        try:
            found = await self._client.list(chosen, timeout_seconds=READ_SECONDS)
        except NotFoundError:  # The cluster has no Dynamic Resource Allocation.
            return ()
        return tuple(self._read_claim(body) for body in found.items)

    def reported_handlers(self, namespace: str, name: str) -> Mapping[str, str]:
        """Discovery handlers that the other Configurations report, see `handler_reports`."""
        others = (v for v in self.configurations if (v.namespace, v.name) != (namespace, name))
        return handler_reports(others, self._has_devices)

    def _has_devices(self, configuration: str) -> bool:
        return bool(self.instances.by_index(BY_CONFIGURATION, configuration))

    async def _find(self, store: Store[T], path: ObjectPath, namespace: str) -> T | None:
        """The object of the store, or else of the API server; None if it does not exist."""

        def known() -> T | None:
            return store.get(path.name, path.namespace)

        async def read() -> None:
            store.note(await self._client.get(path, timeout_seconds=READ_SECONDS))

        if path.resource in self._absent:
            return known()
        return await self._lookups.find(path, namespace, known, read)

    def _remove_instance(self, view: InstanceView) -> None:
        self.rule_context.catalog.remove_instance(view.name)
        # Another namespace may have an Instance of the same name.
        for other in self.instances:
            if other.name == view.name:
                self.rule_context.catalog.put_instance(other)

    def _exists(self, name: str) -> bool:
        known = self.configurations.by_index(BY_NAME, name)
        return bool(known) or self._classes.get(name) is not None

    async def _follow(self, resource: Resource) -> NoReturn:
        """Run the store once its kind is served: old clusters serve no claims, CRDs may follow."""
        while not await self._is_served(resource):
            if resource not in self._absent:
                logger.warning("not served here: %s", resource.select())
            self._absent.add(resource)
            self._asked[resource].set()
            await asyncio.sleep(ABSENT_SECONDS)
        self._absent.discard(resource)
        self._asked[resource].set()
        await self._stores[resource].run()

    async def _is_served(self, resource: Resource) -> bool:
        """Whether the API server serves the kind; asks until it answers."""
        failures = 0
        while resource is not QUEUES and resource is not NAMESPACES:
            try:
                return await self._client.serves(resource)
            except ApiError as error:
                failures += 1
                logger.warning("cannot ask whether %s is served: %s", resource.select(), error)
            await asyncio.sleep(BACKOFF.delay(failures, random.random))
        return True

    def _subscribe(self) -> None:
        tree, catalog = self.rule_context.tree, self.rule_context.catalog
        self._queues.subscribe(_subscriber(tree.put, lambda queue: tree.remove(queue.name)))
        self._classes.subscribe(
            _subscriber(catalog.put_class, lambda view: catalog.remove_class(view.name))
        )
        self.instances.subscribe(_subscriber(catalog.put_instance, self._remove_instance))
        self.configurations.subscribe(
            _subscriber(
                lambda view: catalog.put_configuration(view.name),
                lambda view: catalog.remove_configuration(view.name),
            )
        )


def _subscriber(
    put: Callable[[T], None], remove: Callable[[T], None]
) -> Callable[[Change[T]], None]:
    """A subscriber that removes the old value of a change, and puts the new one."""

    def take(change: Change[T]) -> None:
        if isinstance(change, Deleted | Modified):
            remove(change.old)
        if not isinstance(change, Deleted):
            put(change.new)

    return take
