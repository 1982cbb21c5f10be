"""Writes owners and bindings to the API server, and removes owners if a binding failed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta

from binder.bindings.apiserver_claims import ClaimWriter
from binder.bindings.pod_bindings import BindingState, SeenBinding, binding, binding_state
from binder.cleanup.apiserver_claim_cleanup import ClaimController
from binder.cleanup.apiserver_cleanup_steps import Steps
from binder.cleanup.apiserver_gangs import GangController
from binder.evictions.apiserver_evictions import Evictor
from binder.reclaiming.apiserver_context import ReclaimContext
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from binder.reclaiming.apiserver_reclaims import ReclaimConfig, Reclaimer
from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    NotFoundError,
    RetryableError,
    WriteOptions,
)
from kube.events.api import Event
from kube.kinds import PODS
from kube.objects import JsonObject
from kube.shapes.reading import UnreadableError
from scheduler_plugin.accounting.api import World
from scheduler_plugin.cleanup.api import ClaimCleanup
from scheduler_plugin.objects.api import (
    BindFailed,
    BindRequest,
    Bound,
    ClaimOwner,
    ClaimsChanged,
    Fence,
    FencedError,
    Outcome,
)
from scheduler_plugin.objects.names import ClaimUid

logger = logging.getLogger(__name__)


def _ignore(_: JsonObject) -> None:
    """Ignore the object."""


@dataclass(eq=False)
class Binder:
    """Carries out bindings that were admitted (`scheduler_plugin.objects.api.BinderProtocol`).

    It has no state between calls: if the process is killed in between, each claim has its owner or
    not, and the pod is bound or not. `write_owners` and `bind` together take at most 4.5 times
    `write_seconds`.

    Attributes:
        client: The client with the binder's ServiceAccount.
        fence: Checked before each write.
        queue_label: The key of the queue label; a setting.
        note_claim: Called with each claim that the API server returns.
        note_pod: Called with each pod that the API server returns.
        write_seconds: How long one write may take; a read may take half of it.
    """

    client: ApiClient
    fence: Fence
    _: KW_ONLY
    queue_label: str
    note_claim: Callable[[JsonObject], None]
    note_pod: Callable[[JsonObject], None] = _ignore
    write_seconds: float = 2.0

    def __post_init__(self) -> None:
        self._busy: Counter[ClaimUid] = Counter()
        self._claims = ClaimWriter(
            self.client,
            self.fence,
            queue_label=self.queue_label,
            note_claim=self.note_claim,
            write_seconds=self.write_seconds,
        )

    def claim_controller(
        self,
        cleanup: ClaimCleanup,
        record: Callable[[Event], None],
        clock: Callable[[], datetime],
    ) -> ClaimController:
        """The controller that carries out the cleanup of claims.

        Args:
            cleanup: Decides the steps.
            record: Takes Events without blocking.
            clock: Returns the current time.
        """
        evictor = Evictor(self.client, self.fence, write_seconds=self.write_seconds)
        steps = Steps(self._claims, evictor, cleanup, record, clock)
        return ClaimController(steps, self.fence, is_busy=self.is_busy)

    def reclaimer(
        self,
        world: World,
        config: ReclaimConfig,
        record: Callable[[Event], None],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  As in any shell.
    ) -> Reclaimer:
        """The preemptor for queues below their quota; arguments as for `claim_controller`."""
        context = ReclaimContext(
            writes=self._reclaim_writes(),
            world=world,
            record=record,
            clock=clock,
            monotonic=monotonic,
        )
        return Reclaimer(context, config)

    def gang_controller(
        self,
        world: World,
        grace: timedelta | None,
        record: Callable[[Event], None],
        clock: Callable[[], datetime],
    ) -> GangController:
        """The controller of stale PodGroups; arguments as for `claim_controller`.

        `grace` is how long a group may have too few pods; None for no limit.
        """
        return GangController(
            self._reclaim_writes(),
            world,
            grace=grace,
            record=record,
            clock=clock,
        )

    def _reclaim_writes(self) -> ReclaimWrites:
        return ReclaimWrites(
            self.client,
            Evictor(self.client, self.fence, write_seconds=self.write_seconds),
            self.fence,
            note_pod=self.note_pod,
            write_seconds=self.write_seconds,
        )

    def is_busy(self, claim: ClaimUid) -> bool:
        """Whether a call for a pod that uses the claim is in progress."""
        return claim in self._busy

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        """Write the owner on each claim that lacks it; None once all claims have it."""
        written: list[ClaimOwner] = []
        with self._working(request):
            try:
                async with asyncio.timeout(2 * self.write_seconds):
                    failure = await self._write(request, written)
            except TimeoutError:
                what = f"Pod {request.namespace}/{request.name}"
                seconds = 2 * self.write_seconds
                why = f"{what}: writing the owner of its claims took longer than {seconds:g} s."
                return BindFailed(why, is_certain=False)
            if isinstance(failure, BindFailed) and failure.is_certain:
                return await self._without(written, request, failure.why)
            return failure

    async def roll_back(self, request: BindRequest) -> bool:
        """Remove owners that were written for a pod that is not bound; see `BinderProtocol`."""
        with self._working(request):
            return await self._roll_back(_to_be_written(request), request)

    async def bind(self, request: BindRequest) -> Outcome:
        """Create the binding; if that certainly failed, remove the owners that were written."""
        with self._working(request):
            seen = await self._bind(request)
            match seen.binding_state:
                case BindingState.BOUND:
                    return Bound()
                case BindingState.UNKNOWN:
                    return BindFailed(seen.sentence, is_certain=False)
                case BindingState.ELSEWHERE:
                    return BindFailed(seen.sentence, is_certain=True)
                case BindingState.GONE | BindingState.UNBOUND:
                    return await self._without(_to_be_written(request), request, seen.sentence)

    @contextmanager
    def _working(self, request: BindRequest) -> Iterator[None]:
        claims = [claim.uid for claim in request.claims]
        self._busy.update(claims)
        try:
            yield
        finally:
            for claim in claims:
                self._busy[claim] -= 1
                if not self._busy[claim]:
                    del self._busy[claim]

    async def _write(
        self, request: BindRequest, written: list[ClaimOwner]
    ) -> ClaimsChanged | BindFailed | None:
        for claim in request.claims:
            if claim.is_written:
                continue
            if failure := await self._claims.set_owner(claim):
                return failure
            written.append(claim)
        return None

    async def _bind(self, request: BindRequest) -> SeenBinding:
        """Create the binding; if the answer leaves the outcome open, read the pod."""
        if why := self.fence.why_not(self.write_seconds) or self._why_released(request):
            return SeenBinding(BindingState.UNBOUND, why)
        options = WriteOptions(timeout_seconds=self.write_seconds)
        try:
            body = binding(request)
            await self.client.create(PODS, body, subresource="binding", options=options)
        except ConflictError as error:
            seen = await self._look(request, str(error))
        except RetryableError as error:
            if not error.may_have_happened:
                return SeenBinding(BindingState.UNBOUND, str(error))
            seen = await self._look(request, str(error))
            # The server got a time limit, but nothing proves that it has given up.
            return (
                SeenBinding(BindingState.UNKNOWN, seen.sentence)
                if seen.binding_state is BindingState.UNBOUND
                else seen
            )
        except ApiError as error:
            return SeenBinding(BindingState.UNBOUND, str(error))
        else:
            return SeenBinding(BindingState.BOUND)
        return seen

    def _why_released(self, request: BindRequest) -> str:
        """Why a pod must not be bound now, as a sentence: its claim may be cleared meanwhile.

        A reservation of a PodGroup is older than the pod's Bind, so that no version of the claim
        lets one of the two writes fail.
        """
        for claim in request.claims:
            if self._claims.is_clearing(claim.uid):
                what = f"ResourceClaim {claim.namespace}/{claim.name}"
                return f"{what} is being released, since no pod used it."
        return ""

    async def _look(self, request: BindRequest, why: str) -> SeenBinding:
        """Read the pod after an attempt to bind it failed because of `why`."""
        path = PODS.at(request.name, request.namespace)
        try:
            pod = await self.client.get(path, timeout_seconds=self.write_seconds / 2)
            self.note_pod(pod)
            seen = binding_state(pod, request)
        except NotFoundError:
            return SeenBinding(BindingState.GONE, why)
        except (ApiError, UnreadableError) as error:
            return SeenBinding(BindingState.UNKNOWN, f"{why}; and {error}")
        return seen if seen.sentence else SeenBinding(seen.binding_state, why)

    async def _without(
        self, written: Sequence[ClaimOwner], request: BindRequest, why: str
    ) -> BindFailed:
        return BindFailed(why, is_certain=await self._roll_back(written, request))

    async def _roll_back(self, written: Sequence[ClaimOwner], request: BindRequest) -> bool:
        """Remove the owners written for a pod that is not bound; whether all are removed."""
        try:
            async with asyncio.timeout(self.write_seconds):
                for claim in written:
                    await self._claims.roll_back(claim, request.uid)
        except (ApiError, FencedError, TimeoutError) as error:
            # The next verdict, or the controller of claims, finds the stale owner.
            logger.warning(
                "stale owner not removed pod=%s/%s: %s", request.namespace, request.name, error
            )
            return False
        return True


def _to_be_written(request: BindRequest) -> list[ClaimOwner]:
    return [claim for claim in request.claims if not claim.is_written]
