"""Discovery details of the onvif handler, as Akri writes them, and two fields more.

ipAddresses: {items: [10.0.0.7], action: Include}   # each of the four filters may be absent
macAddresses: {items: [], action: Exclude}
scopes: {items: ["onvif://www.onvif.org/location/hall-3"]}
uuids: {items: []}
discoveryTimeoutSeconds: 1     # how long a cycle waits for answers
identity: address              # or uuid: a camera stays the same at another address
defaultCredentials: Verified   # or Anyone: sent to cameras without a verified certificate, too
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.api import Problem
from driver.discovery.details import Fields
from driver.discovery.filters import ACCEPT_ALL, Filter, read_filter

ADDRESS = "address"
UUID = "uuid"
VERIFIED = "Verified"
ANYONE = "Anyone"

_KNOWN = (
    "ipAddresses",
    "macAddresses",
    "scopes",
    "uuids",
    "discoveryTimeoutSeconds",
    "identity",
    "defaultCredentials",
)


@dataclass(frozen=True, slots=True)
class OnvifDetails:
    """What a Configuration asks of the onvif handler.

    Attributes:
        timeout_seconds: How long a cycle waits for answers to its probe.
        by_uuid: True: a camera is one device, whatever its addresses. False: it is one device for
            each of its addresses, and another device at a new address, as in Akri.
        default_to_anyone: True: default credentials go to every host that claims to be a camera.
            False: they go only to cameras with a verified certificate.
    """

    ip_addresses: Filter = ACCEPT_ALL
    mac_addresses: Filter = ACCEPT_ALL
    scopes: Filter = ACCEPT_ALL
    uuids: Filter = ACCEPT_ALL
    timeout_seconds: float = 1
    by_uuid: bool = False
    default_to_anyone: bool = False


def parse_onvif_details(text: str) -> OnvifDetails | tuple[Problem, ...]:
    """The details, or every problem with them."""
    fields = Fields(text, _KNOWN)
    details = OnvifDetails(
        read_filter(fields, "ipAddresses", str.lower),
        read_filter(fields, "macAddresses", str.lower),
        read_filter(fields, "scopes"),
        read_filter(fields, "uuids", plain_uuid),
        fields.integer("discoveryTimeoutSeconds", default=1, within=range(1, 61)),
        fields.choice("identity", (ADDRESS, UUID), default=ADDRESS) == UUID,
        fields.choice("defaultCredentials", (VERIFIED, ANYONE), default=VERIFIED) == ANYONE,
    )
    return tuple(fields.problems) or details


def plain_uuid(address: str) -> str:
    """The UUID in the address of an endpoint, as Akri writes it."""
    return address.strip().removeprefix("urn:").removeprefix("uuid:").lower()
