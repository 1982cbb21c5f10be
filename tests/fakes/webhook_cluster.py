"""A fake of the cluster as the webhook reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube.calls.api import ApiError
from scheduler_plugin.objects.api import (
    ClaimTemplateView,
    ClaimView,
    NamespaceView,
)
from scheduler_plugin.objects.names import Queue, QueueName
from tests.scheduler_plugin.builders import a_queue
from tests.webhook.builders import rule_context
from webhook.lookups import BusyError
from webhook.rules.rule_context import RuleContext


@dataclass
class FakeCluster:
    """A cluster in memory, for reviews; `lost` is what every read raises."""

    rule_context: RuleContext = field(default_factory=lambda: rule_context(a_queue("vision")))
    unseen: dict[str, Queue] = field(default_factory=dict)
    claims: dict[str, ClaimView] = field(default_factory=dict)
    templates: dict[str, ClaimTemplateView] = field(default_factory=dict)
    owned: tuple[ClaimView, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    handlers: Mapping[str, str] = field(default_factory=dict)
    not_ready: str = ""
    lost: ApiError | TimeoutError | RuntimeError | BusyError | None = None

    def why_not_ready(self) -> str:
        return self.not_ready

    def reported_handlers(self, namespace: str, name: str) -> Mapping[str, str]:
        return self.handlers

    async def look_for_queue(self, name: QueueName, namespace: str = "") -> None:
        self._read()
        if name in self.unseen:
            self.rule_context.tree.put(self.unseen[name])

    async def all_queues(self) -> None:
        self._read()
        for queue in self.unseen.values():
            self.rule_context.tree.put(queue)

    async def namespace(self, name: str) -> NamespaceView:
        self._read()
        return NamespaceView(name, self.labels)

    async def claim(self, namespace: str, name: str) -> ClaimView | None:
        self._read()
        return self.claims.get(name)

    async def template(self, namespace: str, name: str) -> ClaimTemplateView | None:
        self._read()
        return self.templates.get(name)

    async def claims_of(self, queue: QueueName) -> tuple[ClaimView, ...]:
        self._read()
        return self.owned

    def _read(self) -> None:
        if self.lost is not None:
            raise self.lost
