"""Manages the webhook's CA: reads the Secret and the registrations, and writes the next step.

A watch of each object wakes the loop, so that a registration without a `caBundle` is repaired at
once. Each decision reads the objects again.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import NoReturn

from kube.backoff import Backoff
from kube.calls.api import (
    AlreadyExistsError,
    ApiClient,
    ApiError,
    ConflictError,
    NotFoundError,
    Preconditions,
    WriteOptions,
)
from kube.kinds import CONFIG_MAPS, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from kube.live_tls import CertificateError, LiveTls, TlsCredential
from kube.objects import JsonObject
from kube.reconciling.api import After, Failed, Reconciler, Result
from kube.resources import ObjectPath
from kube.shapes.metadata import named_metadata
from kube.shapes.times import timestamp
from kube.stores.api import Store
from kube.wall_clock import wall_clock
from webhook.certificates import authority, rotation
from webhook.certificates.authority import Pair
from webhook.certificates.rotation import CA_CERTIFICATES, Bundle, CaState, OwnCa

logger = logging.getLogger(__name__)

KINDS = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)
LABELS = {"app.kubernetes.io/name": "moorage-webhook", "app.kubernetes.io/part-of": "moorage"}

CALL_SECONDS = 10.0
WRITE = WriteOptions(timeout_seconds=CALL_SECONDS)
CERTIFICATES = "certificates"
"""The only key: each step depends on the Secret and on both registrations."""

BACKOFF = Backoff()
PAUSE_SECONDS = 0.1
"""The shortest time between two passes: limits writes if another program writes `caBundle`, too."""


class CertificateController:
    """Reconciles the Secret and the registrations, and presents the certificate."""

    def __init__(self, client: ApiClient, own: OwnCa, live: LiveTls) -> None:
        """Create; until the first certificate, probes get one of a CA that no client trusts."""
        self._client = client
        self._own = own
        self._live = live
        self._secret = SECRETS.at(own.secret, own.namespace)
        self._published = CONFIG_MAPS.at(own.config_map, own.namespace)
        self._why_not_published = ""
        self._registrations = [kind.at(own.registration) for kind in KINDS]
        self._shown: Pair | None = None
        self._bundles: tuple[Bundle, ...] = ()
        self._since = 0.0
        self._queue: Reconciler[str] = Reconciler(CERTIFICATES, self._reconcile, backoff=BACKOFF)
        now = wall_clock()
        unknown = authority.new_authority(own.life, now)
        live.show(_credential(authority.new_certificate(unknown, own.names, own.life, now)))

    def why_not_ready(self) -> str:
        return "" if self._shown else "There is no certificate yet."

    async def run(self) -> NoReturn:
        """Reconcile until cancelled; failures are logged and retried without a limit."""
        self._queue.add(CERTIFICATES)
        async with asyncio.TaskGroup() as tasks:
            for path in (self._secret, *self._registrations):
                by_name = f"metadata.name={path.name}"
                selection = path.resource.select(path.namespace, field_selector=by_name)
                store = Store(self._client, selection, _version)
                store.subscribe(lambda _change: self._queue.add(CERTIFICATES))
                tasks.create_task(store.run())
            await self._queue.run()
        raise AssertionError("the keeper ended")

    async def _reconcile(self, _: str) -> Result:
        try:
            is_changed = await self._advance()
        except (TimeoutError, CertificateError) as error:
            return Failed(error)
        settle = self._own.settle.total_seconds()
        return After(0.0 if is_changed else settle, pause=PAUSE_SECONDS)

    async def _advance(self) -> bool:
        """Present the certificate if possible, and take one step; False if none is needed."""
        # The Secret first: if it is lost, registrations read later still have the trusted CAs.
        secret = await self._get(self._secret) or {}
        paths = self._registrations
        registrations = [(path, found) for path in paths if (found := await self._get(path))]
        data = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
        state, now = CaState.of(data), wall_clock()
        bundles = tuple(_bundle(one) for _, found in registrations for one in _entries(found))
        self._show(state, bundles)
        step = rotation.next_step(self._own, state, bundles, now, settled=self._settled(bundles))
        if step is None:
            await self._publish(state)
            return False
        # If another replica wrote first, the next pass reads its result.
        with suppress(ConflictError, AlreadyExistsError):
            if isinstance(step, CaState):
                await self._store(secret, state, step)
            else:
                for path, found in registrations:
                    await self._write_bundle(path, found, step.trusted, now)
        return True

    async def _get(self, path: ObjectPath) -> JsonObject | None:
        try:
            return await self._client.get(path, timeout_seconds=CALL_SECONDS)
        except NotFoundError:
            return None

    def _settled(self, bundles: tuple[Bundle, ...]) -> bool:
        clock = asyncio.get_running_loop().time()
        if bundles != self._bundles:
            self._bundles, self._since = bundles, clock
        return clock - self._since >= self._own.settle.total_seconds()

    def _show(self, state: CaState, bundles: tuple[Bundle, ...]) -> None:
        served = state.served
        if served is None or served == self._shown or not rotation.may_serve(state, bundles):
            return
        self._live.show(_credential(served))
        self._shown = served
        until = served.certificate.not_valid_after_utc
        logger.info("certificate served until=%s", timestamp(until))

    async def _store(self, secret: JsonObject, before: CaState, step: CaState) -> None:
        if secret and before.signer is None:
            logger.warning("the Secret %s has no usable CA: a new one is created", self._secret)
        encoded = {name: b64encode(value).decode() for name, value in step.data().items()}
        body = {**(secret or _new_secret(self._own)), "data": encoded}
        if secret:
            # With the resourceVersion that was read, so that no other write is lost.
            await self._client.replace(self._secret, body, options=WRITE)
        else:
            await self._client.create(SECRETS, body, options=WRITE)
        what = "certificate" if before.signer == step.signer else "CA"
        logger.info("a new %s stored in %s", what, self._secret)

    async def _write_bundle(
        self, path: ObjectPath, found: JsonObject, trusted: Bundle, now: datetime
    ) -> None:
        entries = [_trusting(entry, trusted, now) for entry in _entries(found)]
        if entries == _entries(found):
            return
        version, patch = Preconditions(resource_version=_version(found)), {"webhooks": entries}
        await self._client.merge_patch(path, patch, preconditions=version, options=WRITE)
        logger.info("caBundle written to %s", path)

    async def _publish(self, state: CaState) -> None:
        """Write the trusted CAs to the ConfigMap, if it exists.

        A failure delays no certificate: it is logged once, and the next pass retries.
        """
        trouble = ""
        try:
            await self._write_authorities(authority.pem_of(state.trusted).decode())
        except (ApiError, TimeoutError) as error:
            trouble = str(error) or type(error).__name__
        if trouble and trouble != self._why_not_published:
            logger.warning("CA not written to ConfigMap %s: %s", self._published, trouble)
        self._why_not_published = trouble

    async def _write_authorities(self, pem: str) -> None:
        found = await self._get(self._published)
        if found is None or (found.get("data") or {}).get(CA_CERTIFICATES) == pem:
            return
        version, patch = Preconditions(resource_version=_version(found)), {CA_CERTIFICATES: pem}
        await self._client.merge_patch(
            self._published, {"data": patch}, preconditions=version, options=WRITE
        )
        logger.info("CA written to %s", self._published)


def _version(obj: JsonObject) -> str:
    return named_metadata(obj).resource_version or ""


def _credential(pair: Pair) -> TlsCredential:
    return TlsCredential(authority.pem_of([pair.certificate]), pair.key_pem())


def _new_secret(own: OwnCa) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": own.secret, "namespace": own.namespace, "labels": LABELS},
    }


def _entries(registration: JsonObject) -> Sequence[JsonObject]:
    return registration.get("webhooks") or []


def _bundle(entry: JsonObject) -> Bundle:
    return authority.read_certificates(b64decode(entry["clientConfig"].get("caBundle") or ""))


def _trusting(entry: JsonObject, trusted: Bundle, now: datetime) -> JsonObject:
    wanted = rotation.wanted_bundle(_bundle(entry), trusted, now)
    pem = b64encode(authority.pem_of(wanted)).decode()
    return {**entry, "clientConfig": {**entry["clientConfig"], "caBundle": pem}}
