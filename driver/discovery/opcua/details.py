"""Discovery details of the opcua handler, as Akri writes them.

opcuaDiscoveryMethod:
  standard:
    discoveryUrls: ["opc.tcp://10.0.0.7:4840/"]     # default: a Discovery Server on the node
applicationNames:                                   # default: all
  items: ["Press 7"]
  action: Include
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.api import Problem
from driver.discovery.details import DETAILS, Fields, Section, Text, shown
from driver.discovery.filters import ACCEPT_ALL, Filter, read_filter
from driver.discovery.reach import split_url

SCHEME = "opc.tcp"
DEFAULT_URL = "opc.tcp://localhost:4840/"

_METHOD = "opcuaDiscoveryMethod"


@dataclass(frozen=True, slots=True)
class OpcuaDetails:
    """What a Configuration asks of the opcua handler.

    Attributes:
        discovery_urls: URLs of servers, or Discovery Servers, that report which servers exist.
    """

    discovery_urls: tuple[str, ...] = (DEFAULT_URL,)
    application_names: Filter = ACCEPT_ALL


def parse_opcua_details(text: str) -> OpcuaDetails | tuple[Problem, ...]:
    """The details, or every problem with them."""
    fields = Fields(text, (_METHOD, "applicationNames"))
    urls = _discovery_urls(fields)
    names = read_filter(fields, "applicationNames")
    return tuple(fields.problems) or OpcuaDetails(urls, names)


def _discovery_urls(fields: Fields) -> tuple[str, ...]:
    method = fields.section(_METHOD, ("standard",))
    standard = method.section("standard", ("discoveryUrls",)) if method else None
    if standard is None:
        if not fields.problems:
            sentence = "The method must be given; standard is the only one."
            fields.problems.append(Problem(f"{DETAILS}.{_METHOD}", sentence))
        return ()
    return tuple(dict.fromkeys(_urls(standard)))


def _urls(standard: Section) -> list[str]:
    if "discoveryUrls" not in standard:
        return [DEFAULT_URL]
    texts = standard.strings("discoveryUrls")
    standard.problems.extend(_problem(text) for text in texts if not _is_complete(text.value))
    return [text.value for text in texts]


def _is_complete(url: str) -> bool:
    parts = split_url(url, SCHEME)
    return parts is not None and parts.port is not None


def _problem(text: Text) -> Problem:
    sentence = f"{shown(text.value)} is no URL such as {DEFAULT_URL}, with a host and a port."
    return Problem(text.path, sentence)
