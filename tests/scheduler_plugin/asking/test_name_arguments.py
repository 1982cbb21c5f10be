"""Names that a user gives: pods as for kubectl, and none that would be another path."""

from __future__ import annotations

import pytest

from scheduler_plugin.asking.name_arguments import namespace_name, pod_name
from scheduler_plugin.asking.view_errors import CannotAnswerError


@pytest.mark.parametrize("word", ["a.b-0", "pod/a.b-0", "pods/a.b-0", "po/a.b-0", "Pod/a.b-0"])
def test_a_pod_is_named_as_for_kubectl(word: str) -> None:
    assert pod_name(word) == "a.b-0"


@pytest.mark.parametrize(
    "word",
    ["", "pod/", "job/a", "a/..", "..", "a/b/c", "é x", "a%2fb", "-a", "a..b", "A", "a" * 254],
)
def test_what_can_be_no_pod_is_refused(word: str) -> None:
    with pytest.raises(
        CannotAnswerError, match=r"(does not name a|is not a valid name of a) pod: "
    ):
        pod_name(word)


@pytest.mark.parametrize("word", ["", "team/pods", "../x", "namespace/a"])
def test_what_can_be_no_namespace_is_refused(word: str) -> None:
    assert namespace_name("team-0") == "team-0"
    with pytest.raises(CannotAnswerError, match="is not a valid name of a namespace: "):
        namespace_name(word)
