"""Leases on the API server: leader election, and reads of Leases that other processes hold."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from kube.calls.apiserver import ApiClient
from kube.calls.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    UnavailableError,
    said,
)
from kube.calls.requests import WriteOptions
from kube.kinds import LEASES
from kube.leases import leases
from kube.leases.leases import LeaseView, Observation
from kube.objects import JsonObject
from kube.resources import ObjectPath
from kube.shapes.leases import Lease, parse_lease
from kube.shapes.times import micro_time
from kube.wall_clock import wall_clock

log = logging.getLogger(__name__)

T = TypeVar("T")


class LeadershipLostError(Exception):
    """Raised when the Lease could not be renewed in time, or another candidate holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """Times of an election; client-go's defaults.

    renew_deadline_seconds: a leader that could not renew for so long stops. The difference to
        lease_seconds is the time in which the work must stop.
    """

    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    uniform: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not 0 < self.retry_seconds < self.renew_deadline_seconds < self.lease_seconds:
            raise ValueError("retry < renew deadline < lease duration must hold")


class LeaderElector:
    """One candidate for one Lease."""

    def __init__(
        self,
        client: ApiClient,
        name: str,
        namespace: str,
        identity: str,
        settings: ElectionSettings | None = None,
    ) -> None:
        """`identity` must be unique among processes, or two of them lead at the same time."""
        self._client = client
        self._path: ObjectPath = LEASES.at(name, namespace)
        self._identity = identity
        self._settings = settings or ElectionSettings()
        self._observation: Observation | None = None
        self._held_until = 0.0
        self._renewed_at = 0.0
        self._failing = ""

    @property
    def holder(self) -> str:
        """The holder of the Lease when it was last read; "" for none."""
        return self._observation.lease.holder if self._observation else ""

    def seconds_left(self) -> float:
        """Return for how long no other candidate can take the Lease; 0 if it is not held.

        The time counts from before the last renewal was sent: the server may have stored it then,
        and other candidates count from there at the earliest.
        """
        return max(0.0, self._held_until - _now())

    async def lead(self, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for the Lease, do the work while it is held, and release it.

        Raises:
            LeadershipLostError: The Lease was lost; the work is cancelled at once.
        """
        await self._acquire()
        log.info("leading lease=%s identity=%s", self._path, self._identity)
        try:
            return await self._while_held(work)
        finally:
            await self._release()

    async def _acquire(self) -> None:
        settings = self._settings
        while True:
            if await self._attempt(settings.renew_deadline_seconds):
                return
            # Jitter, so that candidates that started together do not keep asking together.
            await asyncio.sleep(settings.retry_seconds * (1 + settings.uniform() / 5))

    async def _while_held(self, work: Callable[[], Awaitable[T]]) -> T:
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew_until_lost())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                renewing.result()
                raise LeadershipLostError(f"{self._path} is held by {self.holder!r}")
            return await working
        finally:
            renewing.cancel()
            working.cancel()
            await asyncio.wait({working, renewing})

    async def _renew_until_lost(self) -> None:
        settings = self._settings
        while (left := self._renewed_at + settings.renew_deadline_seconds - _now()) > 0:
            await asyncio.sleep(min(settings.retry_seconds, left))
            limit = self._renewed_at + settings.renew_deadline_seconds - _now()
            if limit > 0 and not await self._attempt(limit) and self.holder != self._identity:
                break
        self._held_until = 0.0
        log.warning("leadership lost lease=%s holder=%s", self._path, self.holder)

    async def _attempt(self, limit_seconds: float) -> bool:
        """Try once to take or renew the Lease; False also if the server does not answer."""
        sent_at = _now()
        try:
            async with asyncio.timeout(limit_seconds):
                held = await self._take_or_look_again(limit_seconds)
        except (ApiError, TimeoutError) as error:
            # Tried every two seconds: each new cause is logged once.
            cause = error.cause if isinstance(error, ApiError) else UnavailableError.cause
            level = logging.DEBUG if self._failing == cause else logging.WARNING
            log.log(
                level, "election failed lease=%s cause=%s error=%s", self._path, cause, said(error)
            )
            self._failing = cause
            return False
        self._failing = ""
        if held:
            self._renewed_at = sent_at
            self._held_until = sent_at + self._settings.lease_seconds
        return held

    async def _take_or_look_again(self, limit_seconds: float) -> bool:
        try:
            return await self._take(limit_seconds)
        except (ConflictError, AlreadyExistsError):
            # Another candidate wrote first: its identity decides whether this one still leads.
            return await self._take(limit_seconds)

    async def _take(self, limit_seconds: float) -> bool:
        obj = await self._look()
        now_text = micro_time(wall_clock())
        ours = Lease(
            holder=self._identity,
            duration_seconds=self._settings.lease_seconds,
            renew_time=now_text,
            acquire_time=now_text,
        )
        lease = leases.taken(self._observation, ours, now=_now())
        if lease is None:
            return False
        await self._write(obj, lease, limit_seconds)
        return True

    async def _look(self) -> JsonObject | None:
        asked_at = _now()
        try:
            obj = await self._client.get(self._path)
        except NotFoundError:
            self._observation = None
            return None
        lease = parse_lease(obj)
        self._observation = leases.observe(self._observation, lease, asked_at=asked_at, now=_now())
        return obj

    async def _write(self, before: JsonObject | None, lease: Lease, limit: float) -> None:
        options, body = WriteOptions(timeout_seconds=limit), leases.lease_body(self._path, lease)
        if before is None:
            answer = await self._client.create(LEASES, body, options=options)
        else:
            # Keep the other fields, such as labels: they belong to other managers.
            changed = {**before, "spec": body["spec"]}
            answer = await self._client.replace(self._path, changed, options=options)
        now = _now()
        written = parse_lease(answer)
        self._observation = leases.observe(self._observation, written, asked_at=now, now=now)

    async def _release(self) -> None:
        """Let the next candidate take the Lease at once, and not only after its duration."""
        left = self.seconds_left()
        self._held_until = 0.0
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(left, self._settings.retry_seconds)):
                obj = await self._client.get(self._path)
                lease = parse_lease(obj)
                if lease.holder == self._identity:
                    await self._write(obj, leases.released(lease, wall_clock()), left)
        except (ApiError, TimeoutError) as error:
            log.warning("release failed lease=%s error=%r", self._path, error)


class LeaseWatcher:
    """Follows a Lease that another process holds, such as kube-scheduler's, by polling.

    A watch that lags behind would make an old Lease look fresh. A poll bounds the time of a renewal
    from both sides. A Lease is renewed every two seconds anyway.
    """

    def __init__(
        self, client: ApiClient, name: str, namespace: str, *, timeout_seconds: float = 5.0
    ) -> None:
        self._client = client
        self._path = LEASES.at(name, namespace)
        self._timeout_seconds = timeout_seconds
        self._observation: Observation | None = None

    def view(self) -> LeaseView:
        return leases.view(self._observation, now=_now())

    async def poll(self) -> None:
        asked_at = _now()
        try:
            obj = await self._client.get(self._path, timeout_seconds=self._timeout_seconds)
        except NotFoundError:
            self._observation = None
        except ApiError as error:
            # Keep the last observation; it expires by itself.
            log.warning("lease not read lease=%s error=%s", self._path, error)
        else:
            lease = parse_lease(obj)
            self._observation = leases.observe(
                self._observation, lease, asked_at=asked_at, now=_now()
            )


def _now() -> float:
    return asyncio.get_running_loop().time()
