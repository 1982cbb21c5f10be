"""What becomes of the Secret and of each `caBundle`, one step after the other.

Each step writes one object, on the condition that nobody wrote it since it was read; a replica that
loses reads again. Whatever is of no use in the Secret is made anew, so that a replica may be killed
between any two steps and the next one goes on. No call is refused meanwhile, since

* a new authority joins those that are trusted, while the old certificate is served on;
* the first certificate that it signs is stored once every API server had time (`SETTLE`) to see it
  in every `caBundle`: so whatever certificate is stored may be served;
* a `caBundle` goes on to trust whom it trusts, until they expire: the Secret may have been lost.
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
"""By then the watches of all API servers have brought a `caBundle`."""

RENEWED_AFTER = 2 / 3
"""Of a life, be it a certificate's or its authority's."""

MOST_AUTHORITIES = 10
"""Each time that the Secret is lost one more is trusted; those that go have long been replaced."""

CA_CERTIFICATES, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"

Bundle: TypeAlias = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class OwnCa:
    """What an administrator decided.

    Attributes:
        namespace: Of the Secret.
        secret: Its name.
        registration: Name of the webhook configurations of both kinds.
        names: DNS names and addresses by which the webhook is called.
        life: Of a certificate that is served.
    """

    namespace: str
    secret: str
    registration: str
    names: frozenset[str]
    life: timedelta

    @property
    def config_map(self) -> str:
        """Name of the one that tells whom to trust, without the keys; beside the Secret."""
        return f"{self.secret}-ca"

    @property
    def settle(self) -> timedelta:
        return min(SETTLE, self.life / 1000)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the Secret holds, as far as it is of use.

    Attributes:
        trusted: Authorities, the newest last.
        signer: The one of them whose key is there.
        served: The certificate, if its key is there and one of the authorities signed it.
    """

    trusted: Bundle = ()
    signer: Pair | None = None
    served: Pair | None = None

    @classmethod
    def of(cls, data: Mapping[str, bytes]) -> Kept:
        """Read a Secret; what is damaged, or belongs to something else, is left out."""
        trusted = authority.read_certificates(data.get(CA_CERTIFICATES, b""))
        signer = authority.read_pair(trusted, data.get(CA_KEY, b""))
        shown = authority.read_certificates(data.get(CERTIFICATE, b""))
        served = authority.read_pair(shown[:1], data.get(KEY, b""))
        is_known = served and _signer_of(served.certificate, trusted)
        return cls(trusted, signer, served if is_known else None)

    def data(self) -> dict[str, bytes]:
        """What to store; the Secret's type asks for both of a pair, or two empty ones."""
        return {
            CA_CERTIFICATES: authority.pem_of(self.trusted),
            CA_KEY: self.signer.key_pem() if self.signer else b"",
            CERTIFICATE: authority.pem_of([self.served.certificate]) if self.served else b"",
            KEY: self.served.key_pem() if self.served else b"",
        }


@dataclass(frozen=True, slots=True)
class Announce:
    """Make each `caBundle` what `wanted_bundle` says."""

    trusted: Bundle


def next_step(
    own: OwnCa, kept: Kept, bundles: tuple[Bundle, ...], now: datetime, *, settled: bool
) -> Kept | Announce | None:
    """What to store or to announce; None while there is nothing to do but wait.

    `bundles` is every `caBundle` there is; `settled` says that they have been what they are for as
    long as `OwnCa.settle`.
    """
    signer = kept.signer
    if signer is None or _is_due(signer, now):
        return _with_authority(own, kept, bundles, now)
    if any(not set(kept.trusted) <= set(bundle) for bundle in bundles):
        return Announce(kept.trusted)
    names = _names_to_sign(own, kept.served, signer, now)
    if names and (settled or _is_free(kept, signer, bundles, now)):
        return replace(kept, served=authority.new_certificate(signer, names, own.life, now))
    return None


def may_serve(kept: Kept, bundles: tuple[Bundle, ...]) -> bool:
    """Whether there is a certificate that everybody who calls can verify."""
    signer = kept.served and _signer_of(kept.served.certificate, kept.trusted)
    return signer is not None and all(signer in bundle for bundle in bundles)


def wanted_bundle(bundle: Bundle, trusted: Bundle, now: datetime) -> Bundle:
    """What a `caBundle` should be: those who are trusted, after those who were."""
    others = (one for one in bundle if one not in trusted)
    return (*_newest(others, MOST_AUTHORITIES - len(trusted), now), *trusted)


def _with_authority(own: OwnCa, kept: Kept, bundles: tuple[Bundle, ...], now: datetime) -> Kept:
    """A new authority beside those that were trusted.

    Where the Secret was lost, each `caBundle` still says by whom the certificates are signed that
    other replicas serve.
    """
    made = authority.new_authority(own.life, now)
    found = chain(chain.from_iterable(bundles) if kept.signer is None else (), kept.trusted)
    before = _newest(found, MOST_AUTHORITIES - 1, now)
    return replace(kept, trusted=(*before, made.certificate), signer=made)


def _names_to_sign(own: OwnCa, served: Pair | None, signer: Pair, now: datetime) -> frozenset[str]:
    """The names of the certificate that should follow; none while the one that is there will do.

    Names that another replica asked for stay until the next renewal: two that are told different
    ones, as during an update, would sign in turns for ever.
    """
    if served is None or _is_due(served, now):
        return own.names
    names = authority.names_of(served.certificate)
    if own.names <= names and authority.is_signed_by(served.certificate, signer.certificate):
        return frozenset()
    return own.names | names


def _is_free(kept: Kept, signer: Pair, bundles: Iterable[Bundle], now: datetime) -> bool:
    """Nobody waits for an authority that is in use, or while nothing in use can be verified."""
    if kept.served is None:
        return {*kept.trusted, *chain.from_iterable(bundles)} == {signer.certificate}
    served = kept.served.certificate
    is_valid = served.not_valid_before_utc <= now < served.not_valid_after_utc
    return not is_valid or authority.is_signed_by(served, signer.certificate)


def _newest(found: Iterable[x509.Certificate], most: int, now: datetime) -> Bundle:
    """Each once; expired ones for as long as another clock may find them valid."""
    valid = {one for one in found if now < one.not_valid_after_utc + authority.BACKDATED}
    ordered = sorted(valid, key=lambda one: (one.not_valid_before_utc, one.serial_number))
    return tuple(ordered[max(0, len(ordered) - most) :])


def _signer_of(certificate: x509.Certificate, trusted: Bundle) -> x509.Certificate | None:
    return next((one for one in trusted if authority.is_signed_by(certificate, one)), None)


def _is_due(pair: Pair, now: datetime) -> bool:
    """Whether it is time for the next one; who made it may have had a clock that was ahead."""
    first, last = pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc
    return not first <= now < first + RENEWED_AFTER * (last - first)
