"""What brokers are made of, on the API server: read by the driver, written as an account of theirs.

Pods, Jobs, Services and ResourceClaimTemplates are written in the name of a ServiceAccount of
their namespace. So its rights, the namespace's quota and its Pod Security decide what a
Configuration may run there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from driver.api import DRIVER_NAME
from driver.brokers.bodies import Made
from driver.brokers.names import SELECTOR
from driver.brokers.stored import Stored, stored
from kube.calls.api import ApiClient, NotFoundError, Preconditions, WriteOptions
from kube.kinds import JOBS, PODS, SERVICES, TEMPLATES
from kube.resources import Resource
from kube.shapes.reading import JsonObject
from kube.stores.api import Change, Store

logger = logging.getLogger(__name__)

ALL_NAMESPACES = "*"
FIELD_MANAGER = f"{DRIVER_NAME}:brokers"
BY_INSTANCE = "by Instance"
BY_CONFIGURATION = "by Configuration"

_OPTIONS = WriteOptions(field_manager=FIELD_MANAGER)


class BrokerWorkloads:
    """Stores of all that is made for Configurations in the namespaces that are listed.

    Attributes:
        synced: Set once all of it is known.
    """

    def __init__(
        self, client: ApiClient, namespaces: Collection[str], account: str, *, has_claims: bool
    ) -> None:
        """Create.

        Args:
            client: The driver's own.
            namespaces: The namespaces that may have brokers; `*` is all of them.
            account: Name of the ServiceAccount in each namespace that writes.
            has_claims: Whether the API server serves ResourceClaimTemplates.
        """
        self.synced = asyncio.Event()
        self._client = client
        self._account = account
        resources = [PODS, JOBS, SERVICES, *([TEMPLATES] if has_claims else [])]
        selected = [""] if ALL_NAMESPACES in namespaces else sorted(namespaces)
        self._stores = {
            (resource, namespace): _store(client, resource, namespace)
            for resource in resources
            for namespace in selected
        }

    async def run(self, changed: Callable[[Change[Stored]], None]) -> None:
        """Follow all objects until cancelled; `changed` is called for each, once all are known."""
        async with asyncio.TaskGroup() as tasks:
            for store in self._stores.values():
                tasks.create_task(store.run())
            for store in self._stores.values():
                await store.synced.wait()
            self.synced.set()
            for store in self._stores.values():
                store.subscribe(changed)

    def pods(self) -> Iterator[Stored]:
        """All broker Pods."""
        return (pod for key, store in self._stores.items() if key[0] == PODS for pod in store)

    def of_instance(self, namespace: str, label: str) -> tuple[Stored, ...]:
        """All that was made for an Instance; `label` is its name as the value of a label."""
        return tuple(self._indexed(BY_INSTANCE, f"{namespace}/{label}"))

    def of_configuration(self, namespace: str, label: str) -> tuple[Stored, ...]:
        """All that was made for a Configuration and its Instances."""
        return tuple(self._indexed(BY_CONFIGURATION, f"{namespace}/{label}"))

    def _indexed(self, index: str, term: str) -> Iterable[Stored]:
        for store in self._stores.values():
            yield from store.by_index(index, term)

    async def delete(self, found: Stored) -> None:
        """Delete an object, unless another of its name has taken its place. Raises ApiError."""
        path = found.resource.at(found.name, found.namespace)
        try:
            await self._writer(found.namespace).delete(
                path, preconditions=Preconditions(found.uid), in_background=True, options=_OPTIONS
            )
        except NotFoundError:
            logger.debug("already deleted %s", path)
        else:
            logger.info("deleted %s", path)

    async def create(self, made: Made) -> None:
        """Create an object. Raises ApiError, also if another one has its name."""
        answer = await self._writer(made.namespace).create(
            made.resource, made.body, options=_OPTIONS
        )
        self._note(made, answer)

    async def apply(self, made: Made) -> None:
        """Create or change an object by server-side apply. Raises ApiError."""
        path = made.resource.path_of(made.body)
        writer = self._writer(made.namespace)
        answer = await writer.apply(path, made.body, force=True, options=_OPTIONS)
        self._note(made, answer)

    def _note(self, made: Made, answer: JsonObject) -> None:
        logger.info("made %s", made.resource.at(made.name, made.namespace))
        namespace = made.namespace if (made.resource, made.namespace) in self._stores else ""
        self._stores[made.resource, namespace].note(answer)

    def _writer(self, namespace: str) -> ApiClient:
        return self._client.impersonating(f"system:serviceaccount:{namespace}:{self._account}")


def _store(client: ApiClient, resource: Resource, namespace: str) -> Store[Stored]:
    return Store(
        client,
        resource.select(namespace, label_selector=SELECTOR),
        partial(stored, resource),
        indexes={
            BY_INSTANCE: lambda found: (f"{found.namespace}/{found.instance}",),
            BY_CONFIGURATION: lambda found: (f"{found.namespace}/{found.configuration}",),
        },
    )
