"""Applications that OPC UA servers tell of, and at which URL each is a device."""

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
"""Characters of anything that is taken over."""


@dataclass(frozen=True, slots=True)
class Application:
    """What an ApplicationDescription says that matters here.

    Attributes:
        is_server: Whether its type is Server: no client, no Discovery Server, and not both a
            client and a server, as in Akri.
        is_both: Whether it is both.
        discovery_urls: Where it says it can be asked.
    """

    name: str
    is_server: bool
    uri: str = ""
    product_uri: str = ""
    discovery_urls: tuple[str, ...] = ()
    is_both: bool = False


class Place(NamedTuple):
    """Where an application is to be found.

    Attributes:
        url: As it says.
        instead: If the name of its host says nothing here.
        is_own: Whether it told of itself: then it is also there if `url` is not to be asked.
    """

    url: str
    instead: str
    is_own: bool


def place_of(application: Application, asked: str, *, alone: bool) -> Place | None:
    """Where an application is; None if no URL of it is one of OPC UA over TCP.

    Args:
        application: As it was told of.
        asked: The URL that told of it.
        alone: Whether nothing else was told there. Then the application itself answered, and is
            at that URL if its own makes no sense here; else it is on that host, at its own port.
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
    """The device that a server is."""
    told = {
        APPLICATION_NAME: application.name,
        APPLICATION_URI: application.uri,
        PRODUCT_URI: application.product_uri,
    }
    more = {name: value for name, value in told.items() if value and len(value) <= LONGEST}
    return Device(url, {DISCOVERY_URL: url, **more})


def devices(found: Iterable[Device]) -> tuple[Device, ...]:
    """Sorted by id, each once: a server may be registered with several Discovery Servers.

    The first counts.
    """
    first: dict[str, Device] = {}
    for device in found:
        first.setdefault(device.id, device)
    return tuple(device for _, device in sorted(first.items()))


def _on_host_of(here: SplitResult, there: SplitResult) -> str:
    host = f"[{here.hostname}]" if ":" in (here.hostname or "") else here.hostname
    port = f":{there.port}" if there.port is not None else ""
    return there._replace(netloc=f"{host}{port}").geturl()
