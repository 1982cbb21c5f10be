"""Decides the next write to the Secret or to a `caBundle`.

Each step writes one object, on the condition that it is unchanged since it was read; a replica that
loses reads again. Unusable parts of the Secret are created anew. So a replica may be killed between
any two steps, and another one continues. No call of the API server fails meanwhile, since

* a new CA is added to the trusted ones, while the old certificate is still served;
* the first certificate of the new CA is stored only after every API server had time (`SETTLE`) to
  read the CA from every `caBundle`: so every stored certificate may be served;
* a `caBundle` keeps its CAs until they expire: the Secret may have been lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

from cryptography import x509

from webhook.certificates import authority
from webhook.certificates.authority import Pair

SETTLE = timedelta(seconds=30)
"""After this time all API servers have read a `caBundle` from their watches."""

RENEWED_AFTER = 2 / 3
"""Part of the lifetime of a certificate or CA after which it is renewed."""

MOST_AUTHORITIES = 10
"""Trusted CAs in a `caBundle`. Each lost Secret adds one; the oldest are dropped."""

CA_CERTIFICATES, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"

Bundle: TypeAlias = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class OwnCa:
    """Settings of the webhook's own CA.

    Attributes:
        namespace: Namespace of the Secret.
        secret: Name of the Secret.
        registration: Name of the webhook configurations of both kinds.
        names: DNS names and addresses by which the webhook is called.
        life: Lifetime of a serving certificate.
    """

    namespace: str
    secret: str
    registration: str
    names: frozenset[str]
    life: timedelta

    @property
    def config_map(self) -> str:
        """Name of the ConfigMap with the trusted CAs, in the Secret's namespace."""
        return f"{self.secret}-ca"

    @property
    def settle(self) -> timedelta:
        return min(SETTLE, self.life / 1000)


@dataclass(frozen=True, slots=True)
class CaState:
    """The usable contents of the Secret.

    Attributes:
        trusted: CA certificates, the newest last.
        signer: The one of them whose key is in the Secret.
        served: The serving certificate, if its key is there and one of the CAs signed it.
    """

    trusted: Bundle = ()
    signer: Pair | None = None
    served: Pair | None = None

    @classmethod
    def of(cls, data: Mapping[str, bytes]) -> CaState:
        """Parse the data of a Secret; damaged or unrelated parts are left out."""
        trusted = authority.read_certificates(data.get(CA_CERTIFICATES, b""))
        signer = authority.read_pair(trusted, data.get(CA_KEY, b""))
        shown = authority.read_certificates(data.get(CERTIFICATE, b""))
        served = authority.read_pair(shown[:1], data.get(KEY, b""))
        is_known = served and _signer_of(served.certificate, trusted)
        return cls(trusted, signer, served if is_known else None)

    def data(self) -> dict[str, bytes]:
        """Data of the Secret; its type requires certificate and key, or both empty."""
        return {
            CA_CERTIFICATES: authority.pem_of(self.trusted),
            CA_KEY: self.signer.key_pem() if self.signer else b"",
            CERTIFICATE: authority.pem_of([self.served.certificate]) if self.served else b"",
            KEY: self.served.key_pem() if self.served else b"",
        }


@dataclass(frozen=True, slots=True)
class WriteBundles:
    """Write `wanted_bundle` to each `caBundle`."""

    trusted: Bundle


def next_step(
    own: OwnCa, state: CaState, bundles: tuple[Bundle, ...], now: datetime, *, settled: bool
) -> CaState | WriteBundles | None:
    """The next write; None if there is nothing to do, or the time of `OwnCa.settle` must pass.

    `bundles` has every `caBundle`; `settled` says that they are unchanged for `OwnCa.settle`.
    """
    signer = state.signer
    if signer is None or _is_due(signer, now):
        return _with_authority(own, state, bundles, now)
    if any(not set(state.trusted) <= set(bundle) for bundle in bundles):
        return WriteBundles(state.trusted)
    names = _names_to_sign(own, state.served, signer, now)
    if names and (settled or _is_free(state, signer, bundles, now)):
        return replace(state, served=authority.new_certificate(signer, names, own.life, now))
    return None


def may_serve(state: CaState, bundles: tuple[Bundle, ...]) -> bool:
    """Whether there is a certificate that every API server can verify."""
    signer = state.served and _signer_of(state.served.certificate, state.trusted)
    return signer is not None and all(signer in bundle for bundle in bundles)


def wanted_bundle(bundle: Bundle, trusted: Bundle, now: datetime) -> Bundle:
    """The wanted `caBundle`: CAs that were trusted before, and then `trusted`."""
    others = (one for one in bundle if one not in trusted)
    return (*_newest(others, MOST_AUTHORITIES - len(trusted), now), *trusted)


def _with_authority(
    own: OwnCa, state: CaState, bundles: tuple[Bundle, ...], now: datetime
) -> CaState:
    """The Secret with a new CA beside the trusted ones.

    If the Secret was lost, each `caBundle` still has the CAs of the certificates that other
    replicas serve.
    """
    made = authority.new_authority(own.life, now)
    found = chain(chain.from_iterable(bundles) if state.signer is None else (), state.trusted)
    before = _newest(found, MOST_AUTHORITIES - 1, now)
    return replace(state, trusted=(*before, made.certificate), signer=made)


def _names_to_sign(own: OwnCa, served: Pair | None, signer: Pair, now: datetime) -> frozenset[str]:
    """The names for the next certificate; none if the current one will do.

    Names of another replica stay until the next renewal: two replicas with different flags, as
    during an update, would otherwise replace each other's certificate without end.
    """
    if served is None or _is_due(served, now):
        return own.names
    names = authority.names_of(served.certificate)
    if own.names <= names and authority.is_signed_by(served.certificate, signer.certificate):
        return frozenset()
    return own.names | names


def _is_free(state: CaState, signer: Pair, bundles: Iterable[Bundle], now: datetime) -> bool:
    """Whether signing needs no delay: the CA is in use already, or no valid certificate is."""
    if state.served is None:
        return {*state.trusted, *chain.from_iterable(bundles)} == {signer.certificate}
    served = state.served.certificate
    is_valid = served.not_valid_before_utc <= now < served.not_valid_after_utc
    return not is_valid or authority.is_signed_by(served, signer.certificate)


def _newest(found: Iterable[x509.Certificate], most: int, now: datetime) -> Bundle:
    """The newest certificates without duplicates; expired ones stay for `BACKDATED`."""
    valid = {one for one in found if now < one.not_valid_after_utc + authority.BACKDATED}
    ordered = sorted(valid, key=lambda one: (one.not_valid_before_utc, one.serial_number))
    return tuple(ordered[max(0, len(ordered) - most) :])


def _signer_of(certificate: x509.Certificate, trusted: Bundle) -> x509.Certificate | None:
    return next((one for one in trusted if authority.is_signed_by(certificate, one)), None)


def _is_due(pair: Pair, now: datetime) -> bool:
    """Whether a successor is due, also for a start in the future by another replica's clock."""
    first, last = pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc
    return not first <= now < first + RENEWED_AFTER * (last - first)
