"""Shapes of selectors, affinity, taints and tolerations.

All are hashable, so that equal ones can be stored once.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

REPELLING_EFFECTS = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods and claims without a toleration away."""


class Requirement(msgspec.Struct, frozen=True):
    """An entry of `matchExpressions` or `matchFields`."""

    key: str
    operator: str | None = None
    values: tuple[str, ...] | None = None


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Selects objects by labels."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `nodeSelectorTerms`."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Selects nodes by labels and names."""

    node_selector_terms: tuple[Term, ...] | None = None


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """`nodeAffinity` of a pod's affinity, without its preferences."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class AnyObject(msgspec.Struct, frozen=True):
    """An object whose fields are not read: only its presence matters."""


class PodAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """`podAffinity` and `podAntiAffinity` of a pod's affinity."""

    required_during_scheduling_ignored_during_execution: tuple[AnyObject, ...] | None = None


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """`affinity` of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node or of a device."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None

    def __str__(self) -> str:
        """The taint as kubectl writes it: `key:effect` or `key=value:effect`."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True):
    """A toleration of a pod, or of a request for devices."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
