"""When an upgraded API server is asked anew what it keeps."""

from __future__ import annotations

import itertools
import random

from driver.server_versions import READINGS, UNSETTLED_READINGS, ServerVersions

OLD, NEW, NEWEST = "v1.36.3", "v1.37.2", "v1.38.0"


def readings(versions: ServerVersions, *read: str) -> list[bool]:
    return [versions.read(version) for version in read]


def test_the_version_that_was_probed_asks_for_nothing() -> None:
    assert readings(ServerVersions(OLD), *[OLD] * 100) == [False] * 100


def test_a_new_version_counts_once_after_some_readings_in_a_row() -> None:
    versions = ServerVersions(OLD)

    assert readings(versions, OLD, *[NEW] * READINGS) == [*[False] * READINGS, True]
    assert readings(versions, *[NEW] * 100) == [False] * 100
    assert versions.probed == NEW


def test_servers_that_answer_in_turns_have_not_settled() -> None:
    assert readings(ServerVersions(OLD), *[NEW, OLD] * 10) == [False] * 20


def test_a_downgrade_and_a_second_upgrade_count_as_well() -> None:
    versions = ServerVersions(OLD)

    for version in (NEW, OLD, NEWEST):
        assert readings(versions, *[version] * READINGS)[-1]


def test_a_version_that_was_probed_while_another_answered_is_probed_again() -> None:
    """The version was one server's answer, and the probe may have reached another server."""
    versions = ServerVersions(NEW)

    found = readings(versions, OLD, *[NEW] * UNSETTLED_READINGS)

    assert found == [*[False] * UNSETTLED_READINGS, True]


def test_servers_that_a_balancer_chooses_at_random_settle_only_when_all_are_upgraded() -> None:
    """Of two servers, one is upgraded and the other is not, for a week."""
    versions, dice = ServerVersions(OLD), random.Random(7)
    week = 7 * 24 * 3600 // 45

    assert not any(versions.read(dice.choice((OLD, NEW))) for _ in range(week))
    assert any(versions.read(NEW) for _ in range(UNSETTLED_READINGS))


def test_servers_with_lasting_connections_that_are_upgraded_in_turn_are_probed_seldom() -> None:
    """Each restart of a server moves the connection to another one."""
    versions = ServerVersions(OLD)
    connected = ((NEW, 4), (OLD, 4), (NEW, 4), (OLD, 20), (NEW, 200))
    read = itertools.chain.from_iterable([version] * count for version, count in connected)

    assert sum(versions.read(version) for version in read) == 1
    assert versions.probed == NEW
