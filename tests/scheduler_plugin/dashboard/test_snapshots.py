"""Windows of rows, as those see them who may see all of a row or only a part."""

from __future__ import annotations

import json
from typing import Any

from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.snapshots import Line, RowQuery, Snapshot

CAMERA = Line(b'{"name":"cam"}', "cam", b'{"users":["p"]}', "p", "team-a")
LIDAR = Line(b'{"name":"lidar"}', "lidar", b'{"users":[]}', "", "team-b")


def rows(query: RowQuery, offset: int = 0, limit: int = 10) -> tuple[int, list[Any]]:
    snapshot = Snapshot(1, {Part.CLAIMS: [CAMERA, LIDAR]})
    window = snapshot.window(query, offset, limit)
    return snapshot.total(query), [json.loads(row) for row in window]


def test_a_window_says_how_many_rows_there_are() -> None:
    assert rows(RowQuery(Part.CLAIMS), 1, 1) == (2, [{"name": "lidar"}])
    assert rows(RowQuery(Part.CLAIMS), 5) == (2, [])
    assert rows(RowQuery(Part.EVENTS)) == (0, [])


def test_what_is_beside_is_for_those_who_may_see_it() -> None:
    assert rows(RowQuery(Part.CLAIMS, whole=True))[1][0] == {"name": "cam", "users": ["p"]}
    assert rows(RowQuery(Part.CLAIMS))[1][0] == {"name": "cam"}


def test_a_filter_does_not_find_what_is_not_shown() -> None:
    assert rows(RowQuery(Part.CLAIMS, ("p",), whole=True))[0] == 1
    assert rows(RowQuery(Part.CLAIMS, ("p",)))[0] == 0


def test_each_word_must_occur_and_the_namespace_be_the_one() -> None:
    assert rows(RowQuery(Part.CLAIMS, ("li", "dar")))[0] == 1
    assert rows(RowQuery(Part.CLAIMS, ("li", "cam")))[0] == 0
    assert rows(RowQuery(Part.CLAIMS, namespace="team-a"))[1] == [{"name": "cam"}]
    assert rows(RowQuery(Part.CLAIMS, namespace="team"))[0] == 0


def test_rows_of_no_namespace_are_not_filtered_by_one() -> None:
    snapshot = Snapshot(1, {Part.QUEUES: [Line(b"{}", "vision")]})

    assert snapshot.total(RowQuery(Part.QUEUES, namespace="team-a")) == 1
