"""Logins: which login a camera gets, and what users read of a camera that refuses it."""

from __future__ import annotations

from dataclasses import dataclass

from driver.discovery.details import shown
from driver.discovery.onvif.credentials import DEFAULT, Credentials, Login
from driver.discovery.onvif.devices import Address

WITHHELD = (
    "The default credentials are sent only to cameras with a verified certificate: they need https"
    " and the property ca_certificates. To send them to every camera, set defaultCredentials:"
    " Anyone in the details."
)


@dataclass(frozen=True, slots=True)
class Logins:
    """The login for each camera.

    Attributes:
        to_anyone: See `OnvifDetails.default_to_anyone`.
        verifies: Whether certificates of cameras are verified.
    """

    credentials: Credentials
    to_anyone: bool
    verifies: bool

    def of(self, address: Address) -> Login | None:
        """The login for this camera; None for none."""
        logins = self.credentials.logins
        default = None if self._is_withheld(address) else logins.get(DEFAULT)
        return logins.get(address.uuid, default)

    def withheld(self, address: Address) -> bool:
        """Whether there is a login that this camera does not get."""
        logins = self.credentials.logins
        is_default = DEFAULT in logins and address.uuid not in logins
        return is_default and self._is_withheld(address)

    def refusal(self, address: Address, answer: object) -> str:
        """The sentence for a camera that refuses its login: the properties of the login, no value.

        Args:
            address: The camera's.
            answer: The answer of the camera, such as "HTTP status 401".
        """
        sources = self.credentials.sources
        names = sources.get(address.uuid, sources.get(DEFAULT, ()))
        where = " and ".join(map(shown, names))
        return (
            f"{shown(address.url)}: it answers {answer} to the user and the password of"
            f" discoveryProperties {where}. Correct them there, or in the Secret that they come"
            " from; the driver then tries again at once."
        )

    def _is_withheld(self, address: Address) -> bool:
        return not self.to_anyone and not (self.verifies and address.url.startswith("https:"))
