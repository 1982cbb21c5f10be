"""Parsers of the flags of `moorage-driver`, from text to values; see `settings`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import typer

from driver.discovery.handlers import HANDLER_NAMES
from driver.environment_rules import OWN, VARIABLE
from driver.handlers.sdk_requests import TlsFiles
from kube.processes.api import parsed, refuse
from kube.shapes.names import is_label
from kube.shapes.times import parse_duration

YesOrNo = Literal["true", "false"]


def duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if not duration:
        raise ValueError(f"{text!r} is not a duration above 0 such as 30s or 5m")
    return duration


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is not a whole number above 0")
    return int(text)


def handler_names(text: str) -> frozenset[str]:
    names = frozenset(_words(text))
    if unknown := sorted(names.difference(HANDLER_NAMES)):
        raise ValueError(f"no handler {', '.join(unknown)}; use {', '.join(HANDLER_NAMES)}")
    return names


def namespaces(text: str) -> frozenset[str]:
    names = frozenset(_words(text))
    if odd := sorted(name for name in names if name != "*" and not is_label(name)):
        raise ValueError(f"{odd[0]!r} is no name of a namespace")
    return names


def handler_name(text: str) -> str:
    if text not in HANDLER_NAMES:
        raise typer.BadParameter(f"no handler {text}; use {', '.join(HANDLER_NAMES)}")
    return text


def host_paths(text: str) -> tuple[str, ...]:
    paths = _words(text)
    if odd := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise ValueError(f"{odd[0]!r} is not an absolute path without ..")
    return paths


def variable_patterns(text: str) -> tuple[str, ...]:
    patterns = _words(text)
    if odd := [each for each in patterns if not VARIABLE.fullmatch(each.replace("*", "_"))]:
        raise ValueError(f"{odd[0]!r} is not a pattern of variable names such as ACME_*")
    return patterns


def variable_names(text: str) -> tuple[str, ...]:
    names = _words(text)
    if odd := [name for name in names if not VARIABLE.fullmatch(name)]:
        raise ValueError(f"{odd[0]!r} is not a variable name")
    if own := [name for name in names if fnmatchcase(name, OWN)]:
        raise ValueError(f"{own[0]!r} is reserved for Moorage")
    return names


def variable_prefixes(text: str) -> tuple[str, ...]:
    prefixes = _words(text)
    if odd := [prefix for prefix in prefixes if not VARIABLE.fullmatch(prefix)]:
        raise ValueError(f"{odd[0]!r} is not a prefix of a variable name")
    return prefixes


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def lasting(help_: str, default: str) -> Any:
    return parsed(duration, metavar="DURATION", help_=help_, shown=default)


def pem_file(help_: str, **more: Any) -> Any:
    return typer.Option(metavar="FILE", help=help_, **more)


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port to listen on, written `<host>:<port>` as in other parts of Kubernetes.

    Attributes:
        host: None for all addresses of the machine.
        port: 0 for any free port.
    """

    host: str | None
    port: int

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


DEFAULT_METRICS_ADDRESS = Address(None, 8090)


def parse_address(text: str) -> Address | None:
    """Parse `:8090`, `127.0.0.1:8090` or `[::1]:8090`; the empty text is None, for nowhere.

    Raises:
        ValueError: The text is no address; the message says what is expected.
    """
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    plain = host.removeprefix("[").removesuffix("]")
    is_bracketed = plain != host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not <host>:<port> such as :8090 or 127.0.0.1:8090")
    if (":" in plain) is not is_bracketed:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, and no other host")
    return Address(plain or None, int(port))


def tls_files(flag: str, *files: str) -> TlsFiles | None:
    if any(files) and not all(files):
        raise refuse(f"set all of {flag}-ca, {flag}-cert and {flag}-key, or none of them")
    return TlsFiles(*map(Path, files)) if all(files) else None
