"""The onvif handler: every camera that answers a probe, and then a question, is a device.

probe ──► addresses ──► filters on UUID and scopes ──► clock ──► facts ──► other filters ──► devices

A probe's answer is easily lost. So a camera that was there is asked directly for some turns more:
only one that does not answer then, or has been unheard of for `TURNS_UNHEARD`, is gone.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta

from driver.devices import Device
from driver.discovery.details import shown
from driver.discovery.handlers import NO_PROPERTIES, Properties
from driver.discovery.onvif_cameras import (
    Cameras,
    Target,
    UnauthorizedError,
    UnreachableError,
    tls,
)
from driver.discovery.onvif_credentials import Credentials, read_credentials
from driver.discovery.onvif_details import OnvifDetails
from driver.discovery.onvif_devices import (
    Address,
    Camera,
    Facts,
    devices,
    is_wanted,
    may_be_wanted,
)
from driver.discovery.turns import REDISCOVERY_INTERVAL, Reasons, changes
from driver.discovery.ws_discovery import Answers, Heard, NotSentError, ask

logger = logging.getLogger(__name__)

AUTHORITIES = "ca_certificates"
"""The property with certificates, in PEM, by which those of cameras are checked."""

MOST_CAMERAS = 2_000
MOST_AT_ONCE = 256
TURNS_UNHEARD = 3
TURNS_OF_FACTS = 30
"""What a camera said of itself holds for so many turns, and so does its refusal to say it."""


class OnvifHandler:
    """The onvif handler.

    Args:
        interval: Between two looks for the same Configuration.
    """

    name = "onvif"

    def __init__(self, interval: timedelta = REDISCOVERY_INTERVAL) -> None:
        self._interval = interval
        self._reasons = Reasons(logger)

    @property
    def problem(self) -> str | None:
        return self._reasons.problem

    def is_shared(self, _: OnvifDetails) -> bool:
        """Always, as Akri has it."""
        return True

    async def discover(
        self, details: OnvifDetails, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all cameras, and again whenever there are others or one says something else."""
        credentials = read_credentials(properties)
        authorities, flaws = _authorities(properties)
        async with Cameras(authorities, MOST_AT_ONCE) as cameras:
            follower = _Follower(details, credentials, cameras)

            async def look() -> tuple[Device, ...] | None:
                found = await follower.look()
                reasons = (*credentials.flaws, *flaws, *follower.reasons)
                self._reasons.tell(follower, reasons)
                return found

            try:
                async with aclosing(changes(look, self._interval)) as answers:
                    async for found in answers:
                        yield found
            finally:
                self._reasons.forget(follower)


@dataclass(slots=True)
class _Known:
    """A camera that was there in the last turn.

    Attributes:
        unheard: For how many turns.
        turns: For how many turns more its facts hold.
    """

    heard: Heard
    unheard: int = 0
    facts: Facts = field(default_factory=Facts)
    turns: int = 0


@dataclass(slots=True)
class _Locked:
    """A camera that did not accept its login.

    Attributes:
        turns: For how many turns it is not asked.
    """

    why: str
    turns: int = TURNS_OF_FACTS


class _Follower:
    """Follows the cameras of one Configuration from turn to turn."""

    def __init__(self, details: OnvifDetails, credentials: Credentials, cameras: Cameras) -> None:
        self._details = details
        self._credentials = credentials
        self._cameras = cameras
        self._known: dict[Address, _Known] = {}
        self._locked: dict[Address, _Locked] = {}
        self.reasons: list[str] = []

    async def look(self) -> tuple[Device, ...] | None:
        """All devices; None while they cannot be known."""
        self.reasons = []
        try:
            answers = await ask(self._details.timeout_seconds)
        except NotSentError as error:
            self.reasons.append(str(error))
            return None
        self._tell_of(answers)
        candidates = self._candidates(answers.heard)
        async with asyncio.TaskGroup() as tasks:
            for address, known in candidates.items():
                tasks.create_task(self._examine(address, known))
        wanted = (
            Camera(address, known.heard.scopes, known.facts)
            for address, known in self._known.items()
            if self._wanted(address, known)
        )
        return devices(wanted, by_uuid=self._details.by_uuid)

    def _tell_of(self, answers: Answers) -> None:
        if answers.unreadable:
            self.reasons.append("Some answers to the probe make no sense.")
        if answers.unread:
            self.reasons.append("There are more answers to the probe than are read in a turn.")

    def _candidates(self, heard: Mapping[Address, Heard]) -> dict[Address, _Known]:
        """Those to ask in this turn: the ones that were there before come first."""
        before, self._known = self._known, {}
        for address, known in before.items():
            known.unheard = 0 if address in heard else known.unheard + 1
            known.heard = heard.get(address, known.heard)
        self._wait_for_locked()
        fresh = heard.keys() - before.keys() - self._locked.keys()
        new = {address: _Known(heard[address]) for address in sorted(fresh)}
        candidates = [
            (address, known)
            for address, known in {**before, **new}.items()
            if known.unheard < TURNS_UNHEARD
            and may_be_wanted(self._details, address.uuid, known.heard.scopes)
        ]
        if len(candidates) > MOST_CAMERAS:
            self.reasons.append(f"There are more than {MOST_CAMERAS} cameras; the others are left.")
        return dict(candidates[:MOST_CAMERAS])

    def _wait_for_locked(self) -> None:
        for address, locked in list(self._locked.items()):
            locked.turns -= 1
            self.reasons.append(locked.why)
            if locked.turns <= 0:
                del self._locked[address]

    async def _examine(self, address: Address, known: _Known) -> None:
        """Keep a camera if it answers, and what it says of itself."""
        login = self._credentials.of(address.uuid)
        target = Target(address, known.heard.zone, login)
        try:
            now = await self._cameras.clock(target)
            self._known[address] = known
            known.turns -= 1
            if known.turns < 0:
                told = await self._cameras.facts(target, now)
                known.facts = told.or_else(known.facts)
                known.turns = TURNS_OF_FACTS
        except UnreachableError as error:
            why = f"{shown(address.url)}: {error}."
            self.reasons.append(why)
            room = len(self._locked) < MOST_CAMERAS
            if room and login is not None and isinstance(error, UnauthorizedError):
                self._locked[address] = _Locked(why)

    def _wanted(self, address: Address, known: _Known) -> bool:
        """Whether a camera that answers is wanted; told if that cannot be known."""
        if is_wanted(self._details, known.facts):
            return True
        if known.facts.network is None:
            why = "it does not say its IP and MAC address, by which it is filtered"
            self.reasons.append(f"{shown(address.url)}: {why}.")
        return False


def _authorities(properties: Properties) -> tuple[str | None, tuple[str, ...]]:
    """The certificates of a Configuration, and what is wrong with them.

    Those that cannot be read vouch for no camera.
    """
    told = properties.get(AUTHORITIES)
    if told is None:
        return None, ()
    try:
        text = told.decode()
        tls(text)
    except (ValueError, ssl.SSLError):
        return "", (f"The property {AUTHORITIES} holds no certificates in PEM.",)
    return text, ()
