"""What the checker finds that is left of what is gone."""

from __future__ import annotations

from tests.chaos import made
from tests.chaos.objects import OWNER_POD, Object
from tests.chaos.rest_rules import rest_findings

USER = made.pod("p", "red", "c", on="a")


def rules(*bodies: Object) -> set[str]:
    return {finding.rule for finding in rest_findings(made.snapshot(made.configuration(), *bodies))}


def test_an_owner_that_outlives_the_allocation_is_found() -> None:
    claim = made.claim("c", "red")
    claim["metadata"]["annotations"] = {OWNER_POD: "gone"}
    assert rules(made.queue("red"), claim) == {"left-over"}


def test_an_allocation_that_nobody_reserved_is_found() -> None:
    claim = made.claim("c", "red", USER)
    claim["status"]["reservedFor"] = []
    assert rules(made.queue("red", usage={"echo": 1}), claim) == {"left-over"}


def test_an_allocation_that_is_made_again_is_another_one_that_nobody_reserved() -> None:
    """Patience with it begins anew."""
    found = set[str]()
    for since in ("2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"):
        claim = made.claim("c", "red", USER)
        claim["status"]["reservedFor"] = []
        claim["status"]["allocation"]["allocationTimestamp"] = since
        queue = made.queue("red", usage={"echo": 1})
        findings = rest_findings(made.snapshot(made.configuration(), queue, claim))
        found |= {str(each) for each in findings}
    assert len(found) == 2


def test_a_queue_that_a_finalizer_keeps_for_nothing_is_found() -> None:
    queue = made.queue("red", usage={"echo": 1})
    queue["status"] = {}
    queue["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert rules(queue) == {"left-over"}


def test_devices_of_a_configuration_that_is_gone_are_found() -> None:
    slices = made.published("echo-x")
    found = {finding.rule for finding in rest_findings(made.snapshot(slices))}
    assert found == {"left-over"}
