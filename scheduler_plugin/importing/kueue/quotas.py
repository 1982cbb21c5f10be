"""The quotas of a ClusterQueue or a Cohort, by what they count.

Quotas of a resource in several flavors are added up: a ClusterQueue never has more than the sum,
and an entry cannot say on which nodes devices are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scheduler_plugin.importing.findings import Finding, Unsaid
from scheduler_plugin.importing.kueue.kueue_models import ResourceGroup, ResourceQuota
from scheduler_plugin.importing.kueue.resources import Resources
from scheduler_plugin.objects.measures import Definition

LENDING = "All quota that is not used may be borrowed. It is given back when it is needed."
TWICE = "Another resource of the object counts the same devices, and an entry has one quota."
NO_COHORT = "There is no parent to borrow from or to lend to."


@dataclass(frozen=True, slots=True)
class Quota:
    """Amounts in thousandths.

    Attributes:
        borrowing: What may be borrowed; None for no limit.
    """

    nominal: int = 0
    borrowing: int | None = None


@dataclass(frozen=True, slots=True)
class _Cell:
    """The quotas of a resource in a flavor, and where they stand."""

    path: str
    quota: ResourceQuota


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one object.

    Attributes:
        findings: What of its resource groups cannot be said.
    """

    by_definition: Mapping[Definition, Quota]
    findings: tuple[Finding, ...]


def quotas_of(
    about: str, groups: Iterable[ResourceGroup], resources: Resources, *, has_parent: bool
) -> Quotas:
    """The quotas in the resource groups of an object; without a parent it cannot borrow."""
    found: dict[Definition, Quota] = {}
    findings: list[Finding] = []
    for number, group in enumerate(groups):
        for resource, paths, cells in _resources_of(group, f"spec.resourceGroups[{number}]"):
            counting = resources.of(resource)
            if isinstance(counting, Unsaid):
                findings.append(Finding(about, paths, counting.sentence))
            elif counting in found:
                findings.append(Finding(about, paths, TWICE))
            else:
                found[counting] = _sum(cells, has_parent=has_parent)
                findings += _cell_findings(about, resource, cells, has_parent=has_parent)
    return Quotas(found, tuple(findings))


def _resources_of(
    group: ResourceGroup, at: str
) -> Iterator[tuple[str, tuple[str, ...], list[_Cell]]]:
    """Each resource, the paths of all that is said of it, and its quotas."""
    paths: dict[str, list[str]] = {}
    cells: dict[str, list[_Cell]] = {}
    for number, resource in enumerate(group.covered_resources or ()):
        paths.setdefault(resource, []).append(f"{at}.coveredResources[{number}]")
    for number, flavor in enumerate(group.flavors or ()):
        for place, quota in enumerate(flavor.resources or ()):
            path = f"{at}.flavors[{number}].resources[{place}]"
            paths.setdefault(quota.name, []).append(path)
            cells.setdefault(quota.name, []).append(_Cell(path, quota))
    for resource, places in paths.items():
        yield resource, tuple(places), cells.get(resource, [])


def _sum(cells: Iterable[_Cell], *, has_parent: bool) -> Quota:
    quotas = [cell.quota for cell in cells]
    nominal = sum(quota.nominal_quota or 0 for quota in quotas)
    limits = [quota.borrowing_limit for quota in quotas]
    if not has_parent:
        return Quota(nominal, 0)
    known = [limit for limit in limits if limit is not None]
    return Quota(nominal, sum(known) if len(known) == len(limits) else None)


def _cell_findings(
    about: str, resource: str, cells: list[_Cell], *, has_parent: bool
) -> Iterator[Finding]:
    if len(cells) > 1:
        sentence = (
            f"The quotas of {resource} in several flavors are added up: an entry counts devices on"
            " all nodes, and kube-scheduler chooses among them, whatever the order of flavors."
        )
        yield Finding(about, tuple(cell.path for cell in cells), sentence)
    for cell in cells:
        lending, nominal = cell.quota.lending_limit, cell.quota.nominal_quota or 0
        if not has_parent:
            given = {"borrowingLimit": cell.quota.borrowing_limit, "lendingLimit": lending}
            for name in (name for name, limit in given.items() if limit is not None):
                yield Finding(about, (f"{cell.path}.{name}",), NO_COHORT)
        elif lending is not None and lending < nominal:
            yield Finding(about, (f"{cell.path}.lendingLimit",), LENDING)
