"""Rules of the udev handler: which devices they select.

A rule is a list of match keys, `SUBSYSTEM=="block", ATTR{size}!="0"`, and selects the devices for
which all of them hold.

Every value is a glob (`Glob`), whatever the key. Akri reads a value as a glob where libudev can
filter by it and as a regular expression elsewhere (plural keys, `DRIVER`, most of `!=`), so that
`video*` means two things there; here it means what it means to udevd.

These points are also as in udevd, and differ from Akri:

* A device that lacks an attribute matches neither `ATTR{x}=="…"` nor `ATTR{x}!="…"`. A missing
  property, driver or subsystem counts as empty: `ENV{x}!="a"` holds, `ENV{x}=="?*"` does not.
* Plural keys (`KERNELS`, `ATTRS{x}` …) test the device and its ancestors, and all plural keys of a
  rule must hold for the same one of these. Akri finds an ancestor for each key on its own, and
  takes a negated key to mean that no ancestor matches.
* `DEVPATH` is compared with the device's path; Akri adds the path to those that it reads.
* Blanks at the end of an attribute do not count, unless the value of the key ends with one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

_fnmatch = ctypes.CDLL(None).fnmatch
_fnmatch.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)

_MAGIC = frozenset("*?[")
_END = "\0"
"""The end of a text in the C library; libudev's values do not have this character."""


@dataclass(frozen=True, slots=True)
class Glob:
    r"""A shell glob with `|` between alternatives, split once.

    The meaning is systemd-udevd's, so that a rule selects here what it selects there: a value
    without `*`, `?` and `[` is compared as it is; otherwise each alternative is a pattern of the C
    library's `fnmatch(3)` without flags (`*` and `?` match `/` and a leading dot, `\` escapes,
    `[!a]` and `[^a]` negate). An empty alternative matches an empty value. The standard library's
    `fnmatch` differs (no escapes, no `[^a]`, no `[[:digit:]]`).

    Attributes:
        text: The text between the quotes of a rule.
    """

    text: str
    _words: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[bytes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = frozenset(word for word in self.text.split("|") if _END not in word)
        is_magic = not _MAGIC.isdisjoint(self.text)
        object.__setattr__(self, "_words", frozenset() if is_magic else words)
        object.__setattr__(self, "_patterns", tuple(map(_bytes, words)) if is_magic else ())

    def matches(self, value: str) -> bool:
        """Whether the whole value matches."""
        if not self._patterns:
            return value in self._words
        text = _bytes(value)
        return any(_fnmatch(pattern, text, 0) == 0 for pattern in self._patterns)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # as `os.fsdecode` reads bytes that are not UTF-8


class InDoubtError(Exception):
    """Raised when only udevd's database has the answer, and its entry may be outdated."""


class DeviceView(Protocol):
    """The current state of a device; each access may read sysfs."""

    @property
    def path(self) -> str:
        """The device's path without the mount point of sysfs, `/devices/…`."""

    @property
    def sys_name(self) -> str:
        """The last part of the path, with `/` for `!`."""

    @property
    def subsystem(self) -> str | None: ...

    @property
    def driver(self) -> str | None: ...

    @property
    def node(self) -> str | None:
        """Path of the device node, `/dev/…`."""

    @property
    def parent(self) -> DeviceView | None: ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties from the kernel's uevent and udevd's database; only those not in doubt."""

    def attribute(self, name: str) -> str | None:
        """The content of a file in the device's sysfs folder, without the newline at its end."""

    def property(self, name: str) -> str | None:
        """One of the properties.

        Raises:
            InDoubtError: If only udevd's database may have it, and is in doubt.
        """

    def link(self, name: str) -> str | None:
        """The last part of a link's target, in the device's folder; None if there is no link."""

    def is_at(self, path: str) -> bool:
        """Whether a path of the host is, or leads to, its device node."""


@dataclass(frozen=True, slots=True)
class MatchKey:
    """One comparison of a rule.

    Attributes:
        key: The key as written, `ATTR` or `ATTRS`.
        name: The text in braces, for the keys that take one.
        negated: Whether the operator is `!=`.
    """

    key: str
    name: str | None
    negated: bool
    glob: Glob

    def holds(self, device: DeviceView) -> bool:
        """Whether it holds for this device alone, without its ancestors."""
        values = READERS[PLURAL_KEYS.get(self.key, self.key)](device, self)
        return values is not None and any(map(self.glob.matches, values)) != self.negated


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; all its keys must hold.

    Attributes:
        keys: Keys for the device itself, the cheapest to check first.
        ancestor_keys: The plural keys.
    """

    keys: tuple[MatchKey, ...]
    ancestor_keys: tuple[MatchKey, ...] = ()

    def may_match(self, subsystem: str, sys_name: str) -> bool:
        """Whether a device may match, by its name and subsystem alone."""
        known = {"SUBSYSTEM": subsystem, "KERNEL": sys_name}
        return all(
            key.glob.matches(known[key.key]) != key.negated for key in self.keys if key.key in known
        )

    def matches(self, device: DeviceView) -> bool:
        """Whether the rule selects the device."""
        return all(key.holds(device) for key in self.keys) and (
            not self.ancestor_keys
            or any(
                all(key.holds(each) for key in self.ancestor_keys)
                for each in self_and_ancestors(device)
            )
        )


def self_and_ancestors(device: DeviceView) -> Iterator[DeviceView]:
    """The device, its parent, and so on to the root."""
    current: DeviceView | None = device
    while current is not None:
        yield current
        current = current.parent


Reader = Callable[[DeviceView, MatchKey], Iterable[str] | None]
"""The values that a key is compared with; None: the key does not hold, even negated."""


def _attribute(device: DeviceView, key: MatchKey) -> Iterable[str] | None:
    value = device.attribute(key.name or "")
    if value is None:
        return None
    wanted = key.glob.text
    blanks_count = not wanted or wanted[-1].isspace()
    return (value if blanks_count else value.rstrip(" \t\r\n"),)


def _tags(device: DeviceView, _key: MatchKey) -> Iterable[str]:
    # Since systemd 247 TAG matches CURRENT_TAGS; an older udevd writes TAGS only.
    tags = device.property("CURRENT_TAGS") or device.property("TAGS") or ""
    return filter(None, tags.split(":"))


READERS: Mapping[str, Reader] = {
    "SUBSYSTEM": lambda device, _key: (device.subsystem or "",),
    "KERNEL": lambda device, _key: (device.sys_name,),
    "DEVPATH": lambda device, _key: (device.path,),
    "DRIVER": lambda device, _key: (device.driver or "",),
    "ATTR": _attribute,
    "ENV": lambda device, key: (device.property(key.name or "") or "",),
    "TAG": _tags,
}
"""The reader of each key, in the order in which a rule checks them: the cheap ones first, those
that need udevd's database last, because that may be in doubt.
"""

PLURAL_KEYS = {f"{key}S": key for key in ("SUBSYSTEM", "KERNEL", "DRIVER", "TAG", "ATTR")}
NAMED_KEYS = frozenset({"ATTR", "ATTRS", "ENV"})
