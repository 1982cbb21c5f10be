"""Credentials of cameras, in the three ways in which Akri takes them from `discoveryProperties`.

device_credential_list       ["a", …]: each property named holds
                             {"<uuid>": {"username": …, "password": …, "base64encoded": false}}
device_credential_ref_list   ["b", …]: each property named holds
                             {"<uuid>": {"username_ref": "c", "password_ref": "d"}}, where c and d
                             are properties
username_<uuid>, password_<uuid>   with _ for each - of the UUID

A later one wins over an earlier one. `default` in place of a UUID stands for all other cameras.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from driver.discovery.onvif.details import plain_uuid

DEFAULT = "default"
_LIST = "device_credential_list"
_REF_LIST = "device_credential_ref_list"
_USERNAME = "username_"
_PASSWORD = "password_"

T = TypeVar("T")


class Login(NamedTuple):
    """Who asks."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks which camera.

    Attributes:
        logins: By the camera's UUID, or `DEFAULT`.
        flaws: Sentences about properties that make no sense; none of them quotes a value.
    """

    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    flaws: tuple[str, ...] = ()


def read_credentials(properties: Mapping[str, bytes | None]) -> Credentials:
    """The credentials that a Configuration's properties hold."""
    reader = _Reader(properties)
    logins = {
        **reader.listed(_LIST, reader.login),
        **reader.listed(_REF_LIST, reader.referred_login),
        **reader.direct(),
    }
    return Credentials(logins, tuple(reader.flaws))


class _Reader:
    def __init__(self, properties: Mapping[str, bytes | None]) -> None:
        self._properties = properties
        self.flaws: list[str] = []

    def listed(
        self, name: str, login: Callable[[Mapping[str, object]], Login | None]
    ) -> dict[str, Login]:
        """The logins of all lists that a property names."""
        found = {}
        for uuid, entry in self._entries(name):
            read = login(entry) if isinstance(entry, dict) else None
            if read is None:
                self.flaws.append(f"The credentials that {name} names are incomplete.")
            else:
                found[plain_uuid(uuid)] = read
        return found

    def direct(self) -> dict[str, Login]:
        """The logins that have properties of their own."""
        return {
            plain_uuid(name.removeprefix(_USERNAME).replace("_", "-")): Login(
                user, self._text(_PASSWORD + name.removeprefix(_USERNAME)) or ""
            )
            for name in sorted(self._properties)
            if name.startswith(_USERNAME) and name != _USERNAME
            if (user := self._text(name)) is not None
        }

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

    def _entries(self, name: str) -> Iterator[tuple[str, object]]:
        for one in self._json(name, list, "list"):
            yield from self._json(str(one), dict, "object").items()

    def _json(self, name: str, kind: type[T], what: str) -> T:
        text = self._text(name)
        try:
            read = kind() if text is None else json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, kind):
            return read
        self.flaws.append(f"The property {name} holds no JSON {what}.")
        return kind()

    def _text(self, name: str) -> str | None:
        value = self._properties.get(name)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            self.flaws.append(f"The property {name} is not in UTF-8.")
            return None
