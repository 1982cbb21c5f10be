"""The shape of a DeviceTaintRule, by which administrators taint devices of any driver (KEP-5055).

Kubernetes 1.36 serves it as v1beta2 where both the version and its feature gate are on, and 1.37 as
v1. Its selector is the same in both: driver, pool and device, without CEL.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import NamedMetadata
from kube.shapes.selection import REPELLING_EFFECTS
from kube.shapes.slices import DeviceTaint


class DeviceTaintSelector(msgspec.Struct, frozen=True):
    """`deviceSelector`; an absent field selects every driver, pool or device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec`; without a selector it selects no device."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint | None = None


class DeviceTaintRule(msgspec.Struct, frozen=True):
    """A DeviceTaintRule of resource.k8s.io/v1 or v1beta2."""

    metadata: NamedMetadata
    spec: DeviceTaintRuleSpec | None = None

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def taint(self) -> DeviceTaint:
        """The taint that it adds."""
        return (self.spec or NO_SPEC).taint or NO_TAINT

    @property
    def repels(self) -> bool:
        """Whether no new claim gets a device with its taint; the effect `None` only informs."""
        return self.taint.effect in REPELLING_EFFECTS

    @property
    def selector(self) -> DeviceTaintSelector | None:
        """What it selects; None for no device."""
        return (self.spec or NO_SPEC).device_selector

    @property
    def device(self) -> str | None:
        """The only device that it selects in each pool; None for all."""
        return (self.selector or NO_SELECTOR).device

    def selects_pool(self, driver: str, pool: str) -> bool:
        """Whether it may select devices of this pool."""
        found = self.selector
        return found is not None and found.driver in (None, driver) and found.pool in (None, pool)

    def __str__(self) -> str:
        """The taint as kubectl writes it, and the rule."""
        return f"{self.taint} (DeviceTaintRule {self.name})"


NO_SPEC, NO_SELECTOR, NO_TAINT = DeviceTaintRuleSpec(), DeviceTaintSelector(), DeviceTaint()
