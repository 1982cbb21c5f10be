"""Where apt finds packages of another release of Debian than this machine's.

this machine's sources ──sources──► the same places, with the name of the other release
"""

from __future__ import annotations

import re
from pathlib import Path

from local_cluster.errors import BuildError

OS_RELEASE = Path("/etc/os-release")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Debian's keys, also those of later releases."""

TARGET = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
"""The format of a line about a list that apt reads."""


def own_codename() -> str:
    """The codename of this machine's release; "" if it has none."""
    return codename(OS_RELEASE.read_text())


def options() -> str:
    """Options of a source, in brackets."""
    return f"[signed-by={KEYRING}] " if KEYRING.exists() else ""


def codename(os_release: str) -> str:
    """The codename in `/etc/os-release`; "" if it has none."""
    found = re.search(r"^VERSION_CODENAME=\"?([a-z]+)\"?$", os_release, re.MULTILINE)
    return found.group(1) if found else ""


def sources(targets: str, own: str, suite: str, options: str = "") -> str:
    """The machine's sources of Debian's main archive and its updates, of another release.

    Args:
        targets: A line for each list that apt reads, see `TARGET`.
        own: The codename of the machine's release.
        suite: The codename of the other release.
        options: Options of each source, in brackets.

    Raises:
        BuildError: If no source is of the machine's release of Debian.
    """
    found: dict[str, None] = {}
    for line in targets.splitlines():
        place, release, component = line.split("|")
        if component == "main" and re.fullmatch(rf"{own}(-updates|-security)?", release):
            found[f"deb {options}{place} {release.replace(own, suite, 1)} main\n"] = None
    if not found or not own:
        raise BuildError(
            f"the image is made of packages of Debian's {suite}, and this machine's apt has no"
            " source of Debian: add one to /etc/apt/sources.list.d"
        )
    return "".join(found)
