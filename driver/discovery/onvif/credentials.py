"""Credentials of cameras, in the three ways in which Akri takes them from `discoveryProperties`.

device_credential_list       ["a", …]: each property named holds
                             {"<uuid>": {"username": …, "password": …, "base64encoded": false}}
device_credential_ref_list   ["b", …]: each property named holds
                             {"<uuid>": {"username_ref": "c", "password_ref": "d"}}, where c and d
                             are properties
username_<uuid>, password_<uuid>   with _ for each - of the UUID

A later form overrides an earlier one. `default` in place of a UUID means all other cameras.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from driver.discovery.onvif.details import plain_uuid

DEFAULT = "default"
_LIST = "device_credential_list"
_REF_LIST = "device_credential_ref_list"
_USERNAME = "username_"
_PASSWORD = "password_"

T = TypeVar("T")


class Login(NamedTuple):
    """A user and its password."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """The logins for cameras.

    Attributes:
        logins: By the camera's UUID, or `DEFAULT`.
        sources: Names of the properties that each login is read from, by the same keys.
        flaws: Sentences about invalid properties; none of them quotes a value.
    """

    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()


def read_credentials(properties: Mapping[str, bytes | None]) -> Credentials:
    """The credentials that a Configuration's properties hold."""
    reader = _Reader(properties)
    logins = {
        **reader.listed(_LIST, reader.login),
        **reader.listed(_REF_LIST, reader.referred_login),
        **reader.direct(),
    }
    return Credentials(logins, reader.sources, tuple(reader.flaws))


class _Reader:
    def __init__(self, properties: Mapping[str, bytes | None]) -> None:
        self._properties = properties
        self.flaws: list[str] = []
        self.sources: dict[str, tuple[str, ...]] = {}

    def listed(
        self, name: str, login: Callable[[Mapping[str, object]], Login | None]
    ) -> dict[str, Login]:
        """The logins of all lists that a property names."""
        found = {}
        for holder, uuid, entry in self._entries(name):
            read = login(entry) if isinstance(entry, dict) else None
            if read is None:
                self.flaws.append(f"The credentials that {name} names are incomplete.")
            else:
                found[plain_uuid(uuid)] = read
                self._note_sources(
                    uuid, entry.get("username_ref"), entry.get("password_ref"), holder
                )
        return found

    def _note_sources(self, uuid: str, *names: object) -> None:
        """Record which properties a login comes from; other names are skipped."""
        known = [name for name in names if isinstance(name, str) and name in self._properties]
        self.sources[plain_uuid(uuid)] = tuple(dict.fromkeys(known))

    def direct(self) -> dict[str, Login]:
        """The logins that have properties of their own."""
        found = {}
        for name in sorted(self._properties):
            of_whom, user = name.removeprefix(_USERNAME), self._text(name)
            if of_whom in ("", name) or user is None:
                continue
            uuid, password = of_whom.replace("_", "-"), f"{_PASSWORD}{of_whom}"
            found[plain_uuid(uuid)] = Login(user, self._text(password) or "")
            self._note_sources(uuid, name, password)
        return found

    def login(self, entry: Mapping[str, object]) -> Login | None:
        user, password = entry.get("username"), entry.get("password") or ""
        if not isinstance(user, str) or not isinstance(password, str):
            return None
        if not entry.get("base64encoded"):
            return Login(user, password)
        try:
            return Login(user, base64.b64decode(password, validate=True).decode())
        except ValueError:
            return None

    def referred_login(self, entry: Mapping[str, object]) -> Login | None:
        user = self._text(str(entry.get("username_ref")))
        return Login(user, self._text(str(entry.get("password_ref"))) or "") if user else None

    def _entries(self, name: str) -> Iterator[tuple[str, str, Any]]:
        """Each entry of the properties that a list names: property, UUID, entry."""
        for one in self._json(name, list, "list"):
            for uuid, entry in self._json(str(one), dict, "object").items():
                yield str(one), uuid, entry

    def _json(self, name: str, kind: type[T], what: str) -> T:
        text = self._text(name)
        try:
            read = kind() if text is None else json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, kind):
            return read
        self.flaws.append(f"The property {name} is not a JSON {what}.")
        return kind()

    def _text(self, name: str) -> str | None:
        value = self._properties.get(name)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            self.flaws.append(f"The property {name} is not in UTF-8.")
            return None
