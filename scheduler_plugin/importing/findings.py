"""What cannot be said: objects, the paths of their fields, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Fields whose meaning a Queue cannot have, or has only in part.

    Attributes:
        about: Kind and name of the object, such as `ClusterQueue/team-a`.
        paths: Paths of the fields; without one the finding is about the object.
        sentence: Why not, and what the Queue says instead.
    """

    about: str
    paths: tuple[str, ...]
    sentence: str

    def __str__(self) -> str:
        return f"{self.about} {', '.join(self.paths)}".rstrip() + f": {self.sentence}"


@dataclass(frozen=True, slots=True)
class Unsaid:
    """The reason why something has no counterpart, where a value was looked for."""

    sentence: str


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, one for each object and sentence, with the paths of all of them."""
    paths: dict[tuple[str, str], dict[str, None]] = {}
    for each in findings:
        paths.setdefault((each.about, each.sentence), {}).update(dict.fromkeys(each.paths))
    return tuple(Finding(about, tuple(at), said) for (about, said), at in paths.items())


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why fields of a kind that are not translated have no counterpart.

    Attributes:
        by_path: Sentences by the path of a field; a path counts for the fields below it, too.
        same: Values that mean what Moorage does anyway, by the path of the field.
        other: The sentence about all other fields.
    """

    by_path: Mapping[str, str]
    same: Mapping[str, tuple[str, ...]]
    other: str = "Moorage has no such field."

    def findings(self, about: str, fields: Iterable[tuple[str, object]]) -> Iterable[Finding]:
        """The findings about fields, each with its path and value."""
        for path, value in fields:
            if value not in self.same.get(path, ()):
                yield Finding(about, (path,), self._sentence(path))

    def _sentence(self, path: str) -> str:
        found = (known for known in self.by_path if f"{path}.".startswith(f"{known}."))
        return self.by_path[longest] if (longest := max(found, key=len, default="")) else self.other
