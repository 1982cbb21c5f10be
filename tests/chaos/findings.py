"""Findings: what the checker saw that must not be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that must not be.

    Attributes:
        rule: The rule that it breaks, as one word.
        about: The object, as `kind namespace/name`.
        sentence: What was seen, with numbers.
    """

    rule: str
    about: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.sentence}"
