"""Applications that OPC UA servers report, and the URL at which each is a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult

from driver.devices import Device
from driver.discovery.opcua.details import SCHEME
from driver.discovery.reach import split_url

DISCOVERY_URL = "OPCUA_DISCOVERY_URL"
APPLICATION_NAME = "OPCUA_APPLICATION_NAME"
APPLICATION_URI = "OPCUA_APPLICATION_URI"
PRODUCT_URI = "OPCUA_PRODUCT_URI"
LONGEST = 2048
"""Characters of a text that a server reports; a longer text is dropped."""


@dataclass(frozen=True, slots=True)
class Application:
    """The fields of an ApplicationDescription that the handler uses.

    Attributes:
        is_server: Whether its type is Server. A client, a Discovery Server, and an application
            that is client and server are not, as in Akri.
        is_both: Whether its type is ClientAndServer.
        discovery_urls: The URLs at which it says it answers.
    """

    name: str
    is_server: bool
    uri: str = ""
    product_uri: str = ""
    discovery_urls: tuple[str, ...] = ()
    is_both: bool = False


class Place(NamedTuple):
    """Where an application answers.

    Attributes:
        url: The URL that it reports.
        instead: The URL to use if the host name in `url` cannot be resolved here.
        is_own: Whether the application reported itself: then `instead` also counts if `url` may
            not be contacted.
    """

    url: str
    instead: str
    is_own: bool


def place_of(application: Application, asked: str, *, alone: bool) -> Place | None:
    """Where an application answers; None if it has no URL of OPC UA over TCP.

    Args:
        application: The reported application.
        asked: The URL of the server that reported it.
        alone: Whether that server reported nothing else. Then the application itself answered:
            `instead` is that URL. Else `instead` is on that host, at the application's own port.
    """
    here = split_url(asked, SCHEME)
    for url in application.discovery_urls:
        there = split_url(url, SCHEME) if len(url) <= LONGEST else None
        if here is None or there is None:
            continue
        if not alone:
            return Place(url, _on_host_of(here, there), alone)
        has_path = here.path not in ("", "/")
        return Place(url, asked if has_path else here._replace(path=there.path).geturl(), alone)
    return None


def device(url: str, application: Application) -> Device:
    """The device for a server."""
    named = {
        APPLICATION_NAME: application.name,
        APPLICATION_URI: application.uri,
        PRODUCT_URI: application.product_uri,
    }
    more = {name: value for name, value in named.items() if value and len(value) <= LONGEST}
    return Device(url, {DISCOVERY_URL: url, **more})


def devices(found: Iterable[Device]) -> tuple[Device, ...]:
    """The devices sorted by id; of several with one id the first.

    A server may be registered with several Discovery Servers.
    """
    first: dict[str, Device] = {}
    for device in found:
        first.setdefault(device.id, device)
    return tuple(device for _, device in sorted(first.items()))


def _on_host_of(here: SplitResult, there: SplitResult) -> str:
    host = f"[{here.hostname}]" if ":" in (here.hostname or "") else here.hostname
    port = f":{there.port}" if there.port is not None else ""
    return there._replace(netloc=f"{host}{port}").geturl()
