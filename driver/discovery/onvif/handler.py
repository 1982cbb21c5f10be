"""The onvif handler: every camera that answers a probe, and then a question, is a device.

probe ──► addresses ──► filters on UUID and scopes ──► clock ──► facts ──► other filters ──► devices

A sender reports only itself: an address that is not the sender's is not contacted (`reach`), and
of two senders with one UUID the first known is the camera (`devices.rivals`).
An answer to a probe is easily lost. So the next cycles ask a known camera directly. A camera is
absent if it does not answer such a call, or after `CYCLES_UNHEARD` cycles without an answer to a
probe.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from cachetools import TTLCache

from driver.devices import Device
from driver.discovery.contract import NO_PROPERTIES, Properties
from driver.discovery.details import shown
from driver.discovery.handler_cycles import DeviceLists, NetworkHandler
from driver.discovery.onvif.camera_places import locate, refusal
from driver.discovery.onvif.cameras import Cameras, connected
from driver.discovery.onvif.credentials import Login, read_credentials
from driver.discovery.onvif.details import OnvifDetails
from driver.discovery.onvif.devices import (
    Address,
    Camera,
    Facts,
    devices,
    is_ipv6,
    is_name,
    is_wanted,
    may_be_wanted,
    rivals,
)
from driver.discovery.onvif.http_carrier import (
    RefusedError,
    Target,
    UnauthorizedError,
    UnreachableError,
    tls,
)
from driver.discovery.onvif.logins import WITHHELD, Logins
from driver.discovery.onvif.ws_discovery_client import NotSentError, ProbeAnswer, Sender, ask
from driver.discovery.reach import Reach

AUTHORITIES = "ca_certificates"
"""The property with CA certificates in PEM, which verify the certificates of cameras."""

MOST_CAMERAS = 2_000
MOST_AT_ONCE = 256
CYCLES_UNHEARD = 3
CYCLES_OF_FACTS = 30
"""Cycles for which the facts of a camera are cached, and also a refused login."""


class OnvifHandler(NetworkHandler):
    """The onvif handler."""

    name = "onvif"

    async def discover(
        self, details: OnvifDetails, properties: Properties = NO_PROPERTIES
    ) -> DeviceLists:
        """Yield all cameras, and again whenever the list or a fact of a camera changes."""
        credentials = read_credentials(properties)
        context, flaws = _tls(properties)
        verifies = context.verify_mode is ssl.CERT_REQUIRED
        logins = Logins(credentials, details.default_to_anyone, verifies)
        async with connected(context, MOST_AT_ONCE) as cameras:
            follower = _Follower(details, logins, cameras, self._reach)

            async def look(_: tuple[Device, ...] | None) -> DeviceLists:
                found = await follower.look()
                reasons = (*credentials.flaws, *flaws, *follower.reasons)
                self._reasons.record(follower, reasons)
                if found is not None:
                    yield found

            async with aclosing(self._changes(follower, look)) as answers:
                async for found in answers:
                    yield found


@dataclass(slots=True)
class _Known:
    """A camera that was present in the last cycle, or a candidate.

    Attributes:
        heard: The answers that reported it; of a camera that was present only the one in use.
        unheard: For how many cycles no answer to a probe has reported it.
        facts: The last facts that it reported.
        ip: The resolved address of a host that is a name.
    """

    heard: tuple[ProbeAnswer, ...]
    unheard: int = 0
    facts: Facts = field(default_factory=Facts)
    ip: str | None = None

    @property
    def answer(self) -> ProbeAnswer:
        return self.heard[0]

    def hear(self, senders: Mapping[Sender, ProbeAnswer]) -> None:
        """Take the answers of one cycle that report it.

        For a name only the sender that it was resolved for counts; for an address every sender.
        """
        others = () if self.ip is not None else senders.values()
        heard = senders.get(self.answer.sender) or next(iter(others), None)
        self.unheard = 0 if heard else self.unheard + 1
        self.heard = (heard or self.answer,)


class _Follower:
    """Follows the cameras of one Configuration from cycle to cycle."""

    def __init__(
        self, details: OnvifDetails, logins: Logins, cameras: Cameras, reach: Reach
    ) -> None:
        self._details = details
        self._logins = logins
        self._cameras = cameras
        self._reach = reach
        self._known: dict[Address, _Known] = {}
        self._cycle = 0
        self._facts: TTLCache[Address, Facts] = self._for_a_time()
        # Why a camera is not contacted: it refused its login.
        self._locked: TTLCache[Address, str] = self._for_a_time()
        # Why a present camera does not report its facts; until it is asked again.
        self._refusals: dict[Address, str] = {}
        self.reasons: list[str] = []

    def _for_a_time(self) -> TTLCache[Address, Any]:
        return TTLCache(MOST_CAMERAS, CYCLES_OF_FACTS, timer=lambda: self._cycle)

    async def look(self) -> tuple[Device, ...] | None:
        """One discovery cycle: all devices; None while they cannot be known."""
        self._cycle += 1
        self.reasons = list(self._locked.values())
        try:
            # Cached for one cycle: routes may change.
            why_not = cache(partial(refusal, self._reach))
            answers = await ask(self._details.timeout_seconds, why_not)
        except NotSentError as error:
            self.reasons.append(str(error))
            return None
        self.reasons.extend(answers.reasons())
        candidates = self._candidates(answers.heard)
        before, self._known = self._known, {}
        await self._examine_all(candidates, before)
        for gone in before.keys() - self._known.keys():
            self._facts.pop(gone, None)
            self._refusals.pop(gone, None)
        wanted = (
            Camera(address, known.answer.scopes, known.facts)
            for address, known in self._known.items()
            if self._wanted(address, known)
        )
        return devices(wanted, by_uuid=self._details.by_uuid)

    def _candidates(
        self, heard: Mapping[Address, Mapping[Sender, ProbeAnswer]]
    ) -> dict[Address, _Known]:
        """The cameras to ask in this cycle, those that were present before first."""
        before = self._known
        for address, known in before.items():
            known.hear(heard.get(address, {}))
        fresh = [a for a in heard if a not in before and a not in self._locked]
        # A camera with both gets its IPv4 address as property.
        new = {a: _Known(tuple(heard[a].values())) for a in sorted(fresh, key=is_ipv6)}
        candidates = [
            (address, known)
            for address, known in {**before, **new}.items()
            if known.unheard < CYCLES_UNHEARD
            and may_be_wanted(self._details, address.uuid, known.answer.scopes)
        ]
        if len(candidates) > MOST_CAMERAS:
            many = f"There are more than {MOST_CAMERAS} cameras"
            self.reasons.append(f"{many}; the others are ignored.")
        return dict(candidates[:MOST_CAMERAS])

    async def _examine_all(
        self, candidates: Mapping[Address, _Known], before: Mapping[Address, _Known]
    ) -> None:
        """Keep the cameras that answer; of two with one UUID the second only if the first does not.

        Args:
            candidates: The cameras to ask.
            before: The cameras that were present in the cycle before.
        """
        second = _rivals({**before, **candidates})
        await self._examine_some({a: k for a, k in candidates.items() if a not in second})
        later = {a: k for a, k in candidates.items() if a in second}
        second = _rivals({**self._known, **later})
        self.reasons.extend(
            f"{later[address].answer.sender.ip} answers with the UUID {shown(address.uuid)} of the"
            f" camera at {first}, which was known first; it is not contacted."
            for address, first in second.items()
            if address in later
        )
        await self._examine_some({a: k for a, k in later.items() if a not in second})

    async def _examine_some(self, candidates: Mapping[Address, _Known]) -> None:
        async with asyncio.TaskGroup() as tasks:
            asked = {a: tasks.create_task(self._examine(a, k)) for a, k in candidates.items()}
        self._known |= {a: candidates[a] for a, task in asked.items() if task.result()}

    async def _examine(self, address: Address, known: _Known) -> bool:
        """Whether a camera answers; if it does, `known` gets its facts."""
        login = self._logins.of(address)
        try:
            await self._locate(address, known)
            target = Target(address, known.answer.sender.zone, login, known.ip)
            now = await self._cameras.clock(target)
            if address not in self._facts:
                facts, refusal = await self._cameras.facts(target, now)
                self._facts[address] = known.facts = facts.or_else(known.facts)
                self._note_refusal(address, login, refusal)
        except UnreachableError as error:
            self._fail(address, login, error)
            return False
        if address in self._refusals:
            self.reasons.append(self._refusals[address])
        if known.facts == Facts() and self._logins.withheld(address):
            self.reasons.append(WITHHELD)
        return True

    def _note_refusal(
        self, address: Address, login: Login | None, refusal: RefusedError | None
    ) -> None:
        """A present camera that refuses the login is reported; its Instance stays."""
        self._refusals.pop(address, None)
        if login is not None and isinstance(refusal, UnauthorizedError) and refusal.is_certain:
            self._refusals[address] = self._logins.refusal(address, refusal)

    async def _locate(self, address: Address, known: _Known) -> None:
        """Resolve a host name, and choose the answer whose sender may name that address."""
        if known.ip is None and is_name(address.url):
            heard, known.ip = await locate(self._reach, address, known.heard)
            known.heard = (heard,)

    def _fail(self, address: Address, login: Login | None, error: UnreachableError) -> None:
        why = f"{shown(address.url)}: {error}."
        if login is not None and isinstance(error, UnauthorizedError) and error.is_certain:
            why = self._logins.refusal(address, error)
        self.reasons.append(why)
        if not isinstance(error, UnauthorizedError):
            return
        if self._logins.withheld(address):
            self.reasons.append(WITHHELD)
        if login is not None:
            self._locked[address] = why

    def _wanted(self, address: Address, known: _Known) -> bool:
        """Whether a camera passes the filters; a reason is recorded if that is unknown."""
        if is_wanted(self._details, known.facts):
            return True
        if known.facts.network is None:
            why = "it does not report its IP and MAC address, which the filters need"
            self.reasons.append(f"{shown(address.url)}: {why}.")
        return False


def _rivals(known: Mapping[Address, _Known]) -> dict[Address, str]:
    return rivals((a, one.answer.sender.ip, one.answer.named) for a, one in known.items())


def _tls(properties: Properties) -> tuple[ssl.SSLContext, tuple[str, ...]]:
    """The TLS context for https, and the problems with the CA certificates of a Configuration.

    CA certificates that cannot be read verify no camera.
    """
    authorities = properties.get(AUTHORITIES)
    try:
        return tls(None if authorities is None else authorities.decode()), ()
    except (ValueError, ssl.SSLError):
        return tls(""), (f"The property {AUTHORITIES} holds no certificates in PEM.",)
