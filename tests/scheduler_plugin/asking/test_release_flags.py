"""What a release was told is understood, whatever its version."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.asking.release_flags import plugin_flags
from scheduler_plugin.asking.view_errors import CannotAnswerError
from scheduler_plugin.kubectl.release import plugin_settings


def a_deployment(*command: str) -> dict[str, Any]:
    containers = [{"name": "kube-scheduler"}, {"name": "scheduler-plugin", "command": [*command]}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def test_flags_that_change_who_is_charged_count_and_others_of_another_version_do_not() -> None:
    words = plugin_flags(
        a_deployment(
            *("moorage-scheduler-plugin", "serve", "--default-queue", "vision"),
            *("--shiny-new-flag=3", "--queue-label=kai.scheduler/queue", "--quick"),
        )
    )

    told = plugin_settings(words).accounting

    assert (told.default_queue, told.queue_label) == ("vision", "kai.scheduler/queue")


@pytest.mark.parametrize("found", [{}, {"spec": None}, a_deployment() | {"spec": []}])
def test_a_deployment_of_another_shape_says_nothing(found: Any) -> None:
    assert plugin_flags(found) == ()


def test_a_value_that_this_version_does_not_know_is_told_and_ends_nothing_by_itself() -> None:
    with pytest.raises(CannotAnswerError, match=r"does not understand: .*orphan-policy.*Newest"):
        plugin_settings(("--orphan-policy=Newest",))
