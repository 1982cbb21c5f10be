"""When an upgraded API server is asked anew what it keeps."""

from __future__ import annotations

from driver.server_versions import READINGS, ServerVersions

OLD, NEW, NEWEST = "v1.36.3", "v1.37.2", "v1.38.0"


def readings(versions: ServerVersions, *read: str) -> list[bool]:
    return [versions.read(version) for version in read]


def test_the_version_that_was_probed_asks_for_nothing() -> None:
    assert readings(ServerVersions(OLD), *[OLD] * 10) == [False] * 10


def test_a_new_version_counts_once_after_some_readings_in_a_row() -> None:
    versions = ServerVersions(OLD)

    assert readings(versions, OLD, *[NEW] * READINGS) == [*[False] * READINGS, True]
    assert readings(versions, *[NEW] * 10) == [False] * 10
    assert versions.probed == NEW


def test_servers_that_answer_in_turns_have_not_settled() -> None:
    assert readings(ServerVersions(OLD), *[NEW, OLD] * 10) == [False] * 20


def test_a_downgrade_and_a_second_upgrade_count_as_well() -> None:
    versions = ServerVersions(OLD)

    for version in (NEW, OLD, NEWEST):
        assert readings(versions, *[version] * READINGS)[-1]
