"""Builds and runs `moorage-scheduler-plugin serve`."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp

from binder.api import (
    RECLAIM_FIGURES,
    Binder,
    ClaimController,
    FinalizerWriter,
    FinalizingBinder,
    GateWriter,
    GateWrites,
    QueueStatusWriter,
    ReclaimConfig,
    SharingRecorder,
    WarningRecorder,
)
from kube.calls.api import ApiClient, connect
from kube.events.api import EventRecorder
from kube.processes.api import trace_to
from kube.reconciling.api import WORK_QUEUE_FIGURES, After, Reconciler, Result
from kube.wall_clock import wall_clock
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    NamespaceChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
    WorldChange,
)
from scheduler_plugin.cleanup.claim_cleanup import ClaimCleanup
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.dashboard.leader.http_answers import LeaderAnswers, answers_app
from scheduler_plugin.extender.http_app import ExtenderApp
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease
from scheduler_plugin.extender.prometheus_calls import REGISTRY as CALLS
from scheduler_plugin.objects.names import FIELD_MANAGER, ReclaimPolicy
from scheduler_plugin.pages.http_app import pages_app
from scheduler_plugin.pages.http_figures import FiguresPage
from scheduler_plugin.pages.prometheus import Figures, counting_evictions
from scheduler_plugin.serve_settings import ServeSettings

logger = logging.getLogger(__name__)

USER_AGENT = "moorage-scheduler-plugin"

EXPIRE = "expire"
"""The key of the expiry of decisions."""

EXPIRE_SECONDS = 5.0

START_THRESHOLDS = (100_000, 10, 10)
"""Thresholds of the garbage collector while all objects are read. Nearly all of them stay; with the
default thresholds, collections were a third of the work."""

THRESHOLDS = (50_000, 20, 100)
"""Thresholds of the garbage collector afterwards. Few objects are in reference cycles; with the
default thresholds, collections were 6 % of the work of binding pods."""


class ServerEndedError(Exception):
    """Raised when a server has ended."""


async def run_serve(settings: ServeSettings) -> None:
    """Serve the kube-scheduler beside this process until cancelled.

    Calls are answered from the start, at first with the reason why no pod is judged yet. A failed
    task ends the process; when this is cancelled, requests in progress are finished first.
    """
    trace_to(settings.tracing_endpoint, USER_AGENT)
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        plugin = Plugin(client, settings)
        async with asyncio.TaskGroup() as tasks:
            plugin.start(tasks)
            async with (
                serving(plugin.pages(), settings.pages) as pages,
                serving(ExtenderApp(plugin.extender), settings.listening) as bound,
            ):
                logger.info("listening host=%s port=%d", bound.host, bound.port)
                logger.info("pages host=%s port=%d", pages.host, pages.port)
                servers = (bound.server, pages.server)
                done, _ = await asyncio.wait(servers, return_when=asyncio.FIRST_COMPLETED)
                raise ServerEndedError("a server ended") from done.pop().exception()


class Plugin:
    """All parts of the plugin."""

    def __init__(self, client: ApiClient, settings: ServeSettings) -> None:
        accounting = settings.accounting
        self._cluster = ClusterWorld(client, accounting, pod_groups=settings.pod_groups)
        world = self._cluster.world
        self._lease = KubeSchedulerLease(client, settings.elected_by, self._cluster.catch_up)
        binder = Binder(
            client,
            self._lease,
            queue_label=accounting.queue_label,
            note_claim=self._cluster.note_claim,
            note_pod=self._cluster.note_pod,
        )
        self._events = EventRecorder(client, FIELD_MANAGER, settings.instance)
        cleanup = ClaimCleanup(world, settings.leftover_grace)
        record = counting_evictions(self._events.record)
        self._claims = binder.claim_controller(cleanup, record, wall_clock)
        self._statuses = QueueStatusWriter(client, world, self._lease)
        self._warnings = WarningRecorder(world, self._lease, self._events.record)
        self._sharing = SharingRecorder(world, self._lease, self._events.record)
        self._finalizers = FinalizerWriter(client, world, self._lease, self._cluster.note_queue)
        finalizing = FinalizingBinder(binder, self._finalizers)
        self.extender = Extender(self._cluster, finalizing, self._lease, wall_clock)
        writes = GateWrites(client, self._cluster, self._lease)
        self._gates = GateWriter(
            writes, self.extender.refusals, wall_clock, record=self._events.record
        )
        reclaims = ReclaimConfig(
            short_of_room=self._gates.short_of_room,
            inventory=self._cluster.inventory,
            is_off=settings.reclaim is ReclaimPolicy.NEVER,
            most_in_a_minute=settings.evictions_per_minute,
        )
        self._reclaimer = binder.reclaimer(world, reclaims, record, wall_clock)
        self._reclaimer.on_unmet_changed = self._statuses.changed
        self._expiry: Reconciler[str] = Reconciler("expiry", self._expire)
        self._gangs = binder.gang_controller(world, settings.stale_gang_grace, record, wall_clock)
        place, secret = settings.dashboard_address, settings.dashboard_secret
        self._answers = LeaderAnswers(client, place.address, secret, self._lease) if place else None

    def pages(self) -> ASGIApp:
        """The pages for programs and probes."""
        cluster, gates, why_not_ready = self._cluster, self._gates, self.extender.why_not_ready
        world, failures = cluster.world, cluster.watch_failures
        counted = (CALLS, RECLAIM_FIGURES, WORK_QUEUE_FIGURES)
        figures = Figures(world, gates.waiting_pods, why_not_ready, failures, counted)
        return pages_app(why_not_ready, gates, FiguresPage(figures.page))

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the tasks beside the servers."""
        for run in (self._cluster.run, self._lease.run, self._events.run):
            tasks.create_task(run())
        if self._answers is not None:
            app = answers_app(self._cluster.world, self._gates)
            tasks.create_task(self._answers.run(app))
        tasks.create_task(self._run_writers(tasks))

    async def _run_writers(self, tasks: asyncio.TaskGroup) -> None:
        """Start the controllers once all stores are in sync."""
        with _collecting_seldom():
            await self._cluster.in_sync()
        self._reclaimer.begin()
        self._gangs.begin()
        self._expiry.add(EXPIRE)
        listeners: tuple[Callable[[WorldChange], None], ...] = (
            self._reclaimer.changed,
            self._gangs.changed,
            self._statuses.changed,
            _claims_subscriber(self._claims, self._cluster.world),
            self._gates.changed,
            self._finalizers.changed,
            self._sharing.changed,
        )
        for listener in listeners:
            self._cluster.subscribe(listener)
        runs: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
            self._gates.run,
            self.extender.lookups.run,
            self._statuses.run,
            self._claims.run,
            self._reclaimer.run,
            self._gangs.run,
            self._finalizers.run,
            self._warnings.run,
            self._sharing.run,
            self._expiry.run,
        )
        for run in runs:
            tasks.create_task(run())
        self._statuses.changed()

    async def _expire(self, _: str) -> Result:
        """Expire decisions: verdicts do, too, but the controller of claims depends on this."""
        self._cluster.world.assumptions.expire(wall_clock())
        await self.extender.look_at_unknown_binds()
        return After(EXPIRE_SECONDS)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom inside; freeze all objects afterwards, so that answers are fast."""
    gc.set_threshold(*START_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()


def _claims_subscriber(claims: ClaimController, world: World) -> Callable[[WorldChange], None]:
    """A subscriber that adds the claims that a change concerns to their controller."""

    def take(change: WorldChange) -> None:
        match change:
            case ClaimChanged(uid):
                claims.changed((uid,))
            case PodChanged(uid):
                claims.changed(world.facts.claims_consumed_by(uid))
                claims.changed(world.facts.claims_written_for(uid))
            case QueueChanged():
                claims.queues_changed()
            case NamespaceChanged() | GroupChanged() | OtherChanged():
                pass  # The next resync considers it.
        claims.changed(world.take_regrouped())

    return take
