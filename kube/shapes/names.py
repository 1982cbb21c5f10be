"""Names of objects: DNS labels and names of RFC 1123, as the API server checks them."""

from __future__ import annotations

import re

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME = rf"{LABEL}(\.{LABEL})*"
"""Patterns for schemas and other patterns; they do not limit the length."""

LONGEST_LABEL = 63
LONGEST_NAME = 253

_LABEL, _NAME = re.compile(LABEL), re.compile(NAME)


def is_label(text: str, longest: int = LONGEST_LABEL) -> bool:
    """Whether a namespace or a device may have this name."""
    return len(text) <= longest and bool(_LABEL.fullmatch(text))


def is_name(text: str, longest: int = LONGEST_NAME) -> bool:
    """Whether an object of most kinds may have this name."""
    return len(text) <= longest and bool(_NAME.fullmatch(text))
