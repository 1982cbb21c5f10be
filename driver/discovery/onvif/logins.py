"""Logins: who asks which camera, and what is told of a camera that refuses."""

from __future__ import annotations

from dataclasses import dataclass

from driver.discovery.details import shown
from driver.discovery.onvif.credentials import DEFAULT, Credentials, Login
from driver.discovery.onvif.devices import Address

WITHHELD = (
    "The default credentials are not sent to cameras that no certificate vouches for: those that"
    " speak http, and all where the property ca_certificates is missing. defaultCredentials: Anyone"
    " in the details sends them."
)


@dataclass(frozen=True, slots=True)
class Logins:
    """Who asks which camera.

    Attributes:
        to_anyone: See `OnvifDetails.default_to_anyone`.
        verifies: Whether certificates of cameras are checked.
    """

    credentials: Credentials
    to_anyone: bool
    verifies: bool

    def of(self, address: Address) -> Login | None:
        """Who asks this camera; None for nobody in particular."""
        logins = self.credentials.logins
        default = None if self._is_withheld(address) else logins.get(DEFAULT)
        return logins.get(address.uuid, default)

    def withheld(self, address: Address) -> bool:
        """Whether there is a login that this camera is not shown."""
        logins = self.credentials.logins
        is_default = DEFAULT in logins and address.uuid not in logins
        return is_default and self._is_withheld(address)

    def refusal(self, address: Address, answer: object) -> str:
        """Says that a camera does not take its login, and where that comes from; no value of it.

        Args:
            address: The camera's.
            answer: What it answered, as in "HTTP status 401".
        """
        sources = self.credentials.sources
        names = sources.get(address.uuid, sources.get(DEFAULT, ()))
        where = " and ".join(map(shown, names))
        return (
            f"{shown(address.url)}: it answers {answer} to the user and the password of"
            f" discoveryProperties {where}. Correct them there, or in the Secret that they are read"
            " from: then it is asked again at once."
        )

    def _is_withheld(self, address: Address) -> bool:
        return not self.to_anyone and not (self.verifies and address.url.startswith("https:"))
