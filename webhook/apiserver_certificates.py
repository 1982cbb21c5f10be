"""Keeps the webhook's CA: reads the Secret and the registrations, and carries out what is decided.

    registrations, Secret ──► certificates.next_step ──► one write ──► and again
                                                    └──► the listener's certificate

A watch of each object wakes it, so that a registration that is applied without a `caBundle` is
repaired at once; what it decides by is read anew each time, the registrations first.
"""

from __future__ import annotations

import asyncio
import logging
import random
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn, assert_never

from kube.api import (
    AlreadyExistsError,
    ApiClient,
    ApiError,
    Backoff,
    CertificateError,
    ConflictError,
    JsonObject,
    LiveTls,
    NotFoundError,
    ObjectPath,
    Preconditions,
    Resource,
    Store,
    TlsCredential,
    WriteOptions,
)
from webhook import authority, certificates
from webhook.certificates import (
    Announce,
    Announced,
    Certificate,
    Forget,
    Kept,
    MakeAuthority,
    OwnCa,
    Registered,
    Seen,
    Sign,
    Step,
)

logger = logging.getLogger(__name__)

ADMISSION = "admissionregistration.k8s.io"
SECRETS = Resource("", "v1", "secrets")
KINDS = tuple(
    Resource(ADMISSION, "v1", plural, namespaced=False)
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
)
LABELS = {"app.kubernetes.io/name": "moorage-webhook", "app.kubernetes.io/part-of": "moorage"}

CALL_SECONDS = 10.0
PAUSE_SECONDS = 0.5
"""Between two looks: somebody else who writes a `caBundle` of his own is not to be outpaced."""

MOST_STEPS = 20
"""Of one look; five are the most that it takes alone."""


@dataclass(frozen=True, slots=True)
class _View:
    """What was read: the objects, and what they mean."""

    secret: JsonObject | None
    registrations: Mapping[str, tuple[ObjectPath, JsonObject]]
    data: Mapping[str, bytes]
    seen: Seen


class CertificateKeeper:
    """Keeps the Secret and the registrations as they should be, and serves what it may."""

    def __init__(self, client: ApiClient, own: OwnCa, live: LiveTls) -> None:
        """Until there is a certificate, one that nobody trusts answers the probes."""
        self._client = client
        self._own = own
        self._live = live
        self._secret = SECRETS.at(own.secret, own.namespace)
        self._announced = Announced()
        self._shown: Certificate | None = None
        self._woken = asyncio.Event()
        self._trouble = ""
        live.show(TlsCredential(*authority.provisional(own.policy, _now())))

    def why_not_ready(self) -> str:
        return "" if self._shown else "There is no certificate yet."

    async def run(self) -> NoReturn:
        """Keep them until cancelled; failures are retried for ever, and logged."""
        chosen = {"field_selector": f"metadata.name={self._own.registration}"}
        by_name = {"field_selector": f"metadata.name={self._own.secret}"}
        watched = [
            SECRETS.select(self._own.namespace, **by_name),
            *(kind.select(**chosen) for kind in KINDS),
        ]
        async with asyncio.TaskGroup() as tasks:
            for selection in watched:
                store = Store(self._client, selection, _version)
                store.subscribe(lambda _change: self._woken.set())
                tasks.create_task(store.run())
            await self._look_for_ever()
        raise AssertionError("the keeper ended")

    async def _look_for_ever(self) -> NoReturn:
        backoff, failures = Backoff(), 0
        while True:
            # Before the look: a change in the middle of it is reason for another.
            self._woken.clear()
            try:
                await self._look()
                failures, self._trouble = 0, ""
            except (ApiError, TimeoutError, CertificateError) as error:
                failures += 1
                self._tell(str(error) or type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS + backoff.delay(failures, random.random))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._own.policy.settle.total_seconds()):
                    await self._woken.wait()

    def _tell(self, trouble: str) -> None:
        """Once, and not again while it lasts."""
        if trouble != self._trouble:
            logger.warning("certificates not kept: %s", trouble)
        self._trouble = trouble

    async def _look(self) -> None:
        """Take steps until there is none to take."""
        for _ in range(MOST_STEPS):
            view, now = await self._read(), _now()
            self._serve(view, now)
            step = certificates.next_step(view.seen, self._own.policy, now)
            if step is None:
                return
            with suppress(ConflictError, AlreadyExistsError):
                # Somebody else was first: what he wrote is read next.
                await self._take(step, view, now)

    async def _read(self) -> _View:
        registrations = {}
        for kind in KINDS:
            path = kind.at(self._own.registration)
            if (found := await self._get(path)) is not None:
                registrations[kind.plural] = (path, found)
        secret = await self._get(self._secret)
        registered = tuple(_registered(name, one) for name, (_, one) in registrations.items())
        data = _data(secret)
        return _View(secret, registrations, data, self._observed(authority.read(data), registered))

    def _observed(self, kept: Kept, registered: tuple[Registered, ...]) -> Seen:
        clock = asyncio.get_running_loop().time()
        self._announced = certificates.observe(self._announced, registered, kept.trusted, clock)
        return Seen(kept, registered, self._announced, clock)

    async def _get(self, path: ObjectPath) -> JsonObject | None:
        try:
            return await self._client.get(path, timeout_seconds=CALL_SECONDS)
        except NotFoundError:
            return None

    def _serve(self, view: _View, now: datetime) -> None:
        offered = view.seen.kept.served
        if offered is None or offered == self._shown:
            return
        if certificates.may_serve(offered, self._shown, view.seen, self._own.policy, now):
            pair = view.data[authority.CERTIFICATE], view.data[authority.KEY]
            self._live.show(TlsCredential(*pair))
            self._shown = offered
            logger.info("certificate served until=%s", offered.not_after.isoformat())

    async def _take(self, step: Step, view: _View, now: datetime) -> None:
        policy = self._own.policy
        match step:
            case MakeAuthority(trusted):
                if view.secret is not None and view.seen.kept.signer is None:
                    logger.warning("no authority of use in the Secret %s: made anew", self._secret)
                data = authority.with_authority(view.data, trusted, policy, now)
                await self._write(view, data, "a new authority")
            case Forget(trusted):
                data = authority.with_trusted(view.data, trusted)
                await self._write(view, data, "no more than the authorities of use")
            case Sign(names=names):
                data = authority.with_certificate(view.data, names, policy, now)
                await self._write(view, data, "a new certificate")
            case Announce(plurals, trusted):
                for plural in plurals:
                    await self._announce(view.registrations[plural], trusted, now)
            case _:
                assert_never(step)

    async def _write(self, view: _View, data: Mapping[str, bytes], what: str) -> None:
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        options = WriteOptions(timeout_seconds=CALL_SECONDS)
        if view.secret is None:
            body = {**self._new_secret(), "data": encoded}
            await self._client.create(SECRETS, body, options=options)
        else:
            # With the resourceVersion that was read: nobody's write is lost.
            body = {**view.secret, "data": encoded}
            await self._client.replace(self._secret, body, options=options)
        logger.info("%s stored in %s", what, self._secret)

    def _new_secret(self) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {
                "name": self._own.secret,
                "namespace": self._own.namespace,
                "labels": LABELS,
            },
        }

    async def _announce(
        self,
        registration: tuple[ObjectPath, JsonObject],
        trusted: tuple[Certificate, ...],
        now: datetime,
    ) -> None:
        path, found = registration
        policy = self._own.policy
        entries = [
            _trusting(entry, certificates.wanted_bundle(_bundle(entry), trusted, policy, now))
            for entry in found["webhooks"]
        ]
        await self._client.merge_patch(
            path,
            {"webhooks": entries},
            preconditions=Preconditions(resource_version=found["metadata"]["resourceVersion"]),
            options=WriteOptions(timeout_seconds=CALL_SECONDS),
        )
        logger.info("caBundle written to %s", path)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  The shell is where time comes from.


def _version(obj: JsonObject) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _data(secret: JsonObject | None) -> dict[str, bytes]:
    found = (secret or {}).get("data") or {}
    return {name: b64decode(value) for name, value in found.items()}


def _registered(name: str, found: JsonObject) -> Registered:
    return Registered(name, tuple(_bundle(entry) for entry in found.get("webhooks") or ()))


def _bundle(entry: JsonObject) -> tuple[Certificate, ...]:
    return authority.bundle(b64decode(entry["clientConfig"].get("caBundle") or ""))


def _trusting(entry: JsonObject, wanted: tuple[Certificate, ...]) -> JsonObject:
    pem = b64encode(authority.joined(wanted)).decode()
    config = {**entry["clientConfig"], "caBundle": pem}
    return {**entry, "clientConfig": config}
