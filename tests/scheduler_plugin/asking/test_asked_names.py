"""Names that a user gives: pods as for kubectl, and none that would be another path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_plugin.asking.asked_names import checked
from scheduler_plugin.asking.view_errors import CannotTellError
from scheduler_plugin.asking.view_settings import Reading, ViewSettings

READING = Reading(None, "", "moorage-system", "table")


def why(name: str, namespace: str = "", reading: Reading = READING) -> ViewSettings:
    return ViewSettings(view="why", reading=reading, name=name, namespace=namespace)


@pytest.mark.parametrize("word", ["a.b-0", "pod/a.b-0", "pods/a.b-0", "po/a.b-0", "Pod/a.b-0"])
def test_a_pod_is_named_as_for_kubectl(word: str) -> None:
    assert checked(why(word, "team")) == why("a.b-0", "team")


@pytest.mark.parametrize(
    "word",
    ["", "pod/", "job/a", "a/..", "..", "a/b/c", "é x", "a%2fb", "-a", "a..b", "A", "a" * 254],
)
def test_what_can_be_no_pod_is_refused(word: str) -> None:
    with pytest.raises(CannotTellError, match=r"is no (name of a )?pod: "):
        checked(why(word))


@pytest.mark.parametrize(
    "settings",
    [
        why("a", "team/pods"),
        why("a", reading=replace(READING, release_namespace="../x")),
        ViewSettings(view="claims", reading=READING, namespace="a/b"),
    ],
)
def test_what_can_be_no_namespace_is_refused(settings: ViewSettings) -> None:
    with pytest.raises(CannotTellError, match="is no name of a namespace: "):
        checked(settings)
