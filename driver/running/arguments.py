"""What flags of `moorage-driver` may say, each read from its text; see `settings`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from driver.discovery.handlers import HANDLER_NAMES
from driver.environment import NETWORK_PREFIXES, OWN, VARIABLE
from driver.handlers.limits import DEVICES, MOST_DEVICES, NETWORK_HANDLERS, NODE_DEVICES
from driver.handlers.sdk_requests import AGENT_FOLDER, AGENT_SOCKET, TlsFiles
from kube.api import parsed, refuse
from kube.shapes.times import parse_duration

YesOrNo = Literal["true", "false"]


def duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if not duration:
        raise ValueError(f"{text!r} is no duration such as 30s or 5m")
    return duration


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


def handler_names(text: str) -> frozenset[str]:
    names = frozenset(_words(text))
    if unknown := sorted(names.difference(HANDLER_NAMES)):
        there_are = ", ".join(HANDLER_NAMES)
        raise ValueError(f"no handler {', '.join(unknown)}; there are {there_are}")
    return names


def handler_name(text: str) -> str:
    if text not in HANDLER_NAMES:
        raise typer.BadParameter(f"no handler {text}; there are {', '.join(HANDLER_NAMES)}")
    return text


def host_paths(text: str) -> tuple[str, ...]:
    paths = _words(text)
    if odd := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise ValueError(f"{odd[0]!r} is no absolute path")
    return paths


def variable_patterns(text: str) -> tuple[str, ...]:
    patterns = _words(text)
    if odd := [each for each in patterns if not VARIABLE.fullmatch(each.replace("*", "_"))]:
        raise ValueError(f"{odd[0]!r} is no pattern of variables' names such as ACME_*")
    return patterns


def variable_names(text: str) -> tuple[str, ...]:
    names = _words(text)
    if odd := [name for name in names if not VARIABLE.fullmatch(name)]:
        raise ValueError(f"{odd[0]!r} is no variable's name")
    if own := [name for name in names if fnmatchcase(name, OWN)]:
        raise ValueError(f"{own[0]!r} is Moorage's own")
    return names


def variable_prefixes(text: str) -> tuple[str, ...]:
    prefixes = _words(text)
    if odd := [prefix for prefix in prefixes if not VARIABLE.fullmatch(prefix)]:
        raise ValueError(f"{odd[0]!r} begins no variable's name")
    return prefixes


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def lasting(help_: str, default: str) -> Any:
    return parsed(duration, metavar="DURATION", help_=help_, shown=default)


def pem_file(help_: str, **more: Any) -> Any:
    return typer.Option(metavar="FILE", help=f"PEM: {help_}", **more)


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port to listen at, `<host>:<port>` as other parts of Kubernetes write it.

    Attributes:
        host: None for all addresses of the machine.
        port: 0 for any that is free.
    """

    host: str | None
    port: int

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


DEFAULT_METRICS_ADDRESS = Address(None, 8090)


def parse_address(text: str) -> Address | None:
    """`:8090`, `127.0.0.1:8090` or `[::1]:8090`; None for nowhere, which is the empty text.

    Raises:
        ValueError: With a sentence about what it should be.
    """
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    plain = host.removeprefix("[").removesuffix("]")
    is_bracketed = plain != host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no <host>:<port> such as :8090 or 127.0.0.1:8090")
    if (":" in plain) is not is_bracketed:
        raise ValueError(f"{text!r}: an IPv6 address, and no other host, stands in brackets")
    return Address(plain or None, int(port))


def tls_files(flag: str, *files: str) -> TlsFiles | None:
    if any(files) and not all(files):
        raise refuse(f"{flag}-ca, {flag}-cert and {flag}-key: all of them, or none")
    return TlsFiles(*map(Path, files)) if all(files) else None


EmbeddedHandlers = Annotated[
    frozenset[str],
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Discovery handlers that run in this process, with commas between them; the"
        " others are waited for.",
        shown=",".join(HANDLER_NAMES),
    ),
]
RegistrationSocket = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="FILE",
        help_="Where discovery handlers of other processes register; empty: nowhere.",
        shown=str(AGENT_FOLDER / AGENT_SOCKET),
    ),
]
NetworkFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_=f"Where {' and '.join(NETWORK_HANDLERS)} may register that run without"
        " privileges, and listen (default: none).",
    ),
]
DevicePaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Of the host, with commas between them: what registered handlers give containers"
        " as device nodes lies there or below; a part may be a pattern.",
        shown=DEVICES,
    ),
]
MountPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="The same for files and folders that they mount (default: none).",
    ),
]
ContainerPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Of containers, with commas between them: registered handlers may put device nodes"
        " and mounts there or below, too; a part may be a pattern (default: device nodes below"
        " /dev, and mounts where containers have neither programs, settings nor secrets).",
    ),
]
HostDevFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_="Where the driver sees the host's /dev: links in it are followed there, and what"
        " is no device node is not given (default: /dev, where that is the host's).",
    ),
]
NamesAllowed = Annotated[
    frozenset[str] | None,
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Names of Moorage's own that handlers of other processes may register all the"
        " same, with commas between them (default: those that are not in --embedded-handlers).",
    ),
]
NetworkPrefixes = Annotated[
    Sequence[str],
    parsed(
        variable_prefixes,
        metavar="PREFIXES",
        help_="Properties that handlers in --network-handlers-folder report become environment of"
        " containers if their names begin with one of these, with commas between them.",
        shown=",".join(NETWORK_PREFIXES),
    ),
]
DeniedNames = Annotated[
    Sequence[str],
    parsed(
        variable_patterns,
        metavar="PATTERNS",
        help_="Patterns of variables' names, such as ACME_*, with commas between them, that are"
        " denied as environment of containers beside the built-in ones (default: none).",
    ),
]
AllowedNames = Annotated[
    Sequence[str],
    parsed(
        variable_names,
        metavar="NAMES",
        help_="Names of variables, with commas between them, that properties of devices may become"
        " although they are denied (default: none).",
    ),
]
HandlerMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="That one registered handler may report in all.",
        shown=str(MOST_DEVICES),
    ),
]
NodeMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="That all registered handlers may report together, a sixth of them those in"
        " --network-handlers-folder. Each takes up to 18 KiB of memory.",
        shown=str(NODE_DEVICES),
    ),
]
GroupByNodes = Annotated[
    bool,
    typer.Option(
        "--group-by-nodes",
        help="Publish a ResourceSlice for each set of nodes that see devices, however many there"
        " are, as versions before this flag do: for a rollback to one.",
    ),
]

DriverNamespace = Annotated[
    str,
    typer.Option(
        envvar=["DRIVER_NAMESPACE", "POD_NAMESPACE"],
        help="Of the drivers on nodes, as the chart's driver.namespace says.",
    ),
]

StaleClaimGrace = Annotated[
    timedelta,
    lasting(
        "How long a prepared claim is kept that the API server does not have, and that neither"
        " the kubelet nor a pod of the node names.",
        "1h",
    ),
]
