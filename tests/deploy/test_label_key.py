"""Another key of the queue label, by the commands of docs/kai.md: everywhere, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin.arguments import parse_settings as parse_plugin_settings
from scheduler_plugin.serve_settings import ServeSettings
from tests.deploy.documents import DEPLOY
from webhook.settings import parse_settings as parse_webhook_settings

DOCS = DEPLOY.parent / "docs/kai.md"
FOLDERS = ("manifests", "policies", "webhook")
OURS, KAIS = "moorage.dev/queue", "kai.scheduler/queue"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of deploy/ after the commands."""
    copy = tmp_path_factory.mktemp("deploy")
    for folder in FOLDERS:
        shutil.copytree(DEPLOY / folder, copy / folder)
    found = re.search(r"```sh\n(.+?)```", DOCS.read_text(), re.DOTALL)
    assert found is not None
    subprocess.run(("bash", "-euc", found[1]), cwd=copy, check=True)
    return copy


def differences(folder: str, changed: Path) -> dict[str, list[tuple[str, str]]]:
    """What stands where in the objects of a folder, before and after, by the object's name."""
    return {
        before["metadata"]["name"]: list(_differing(before, after))
        for path in changed_files(folder, changed)
        for before, after in zip(read(DEPLOY / folder / path.name), read(path), strict=True)
        if before != after
    }


def changed_files(folder: str, changed: Path) -> list[Path]:
    paths = sorted((changed / folder).glob("*.yaml"))
    return [path for path in paths if path.read_text() != (DEPLOY / folder / path.name).read_text()]


def read(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def _differing(before: Any, after: Any) -> Iterator[tuple[str, str]]:
    if isinstance(before, dict) and isinstance(after, dict):
        assert before.keys() == after.keys()
        for key in before:
            yield from _differing(before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _differing(one, other)
    elif before != after:
        yield str(before), str(after)


def test_each_policy_that_names_the_label_protects_the_other_key(changed: Path) -> None:
    found = differences("policies", changed)

    assert all(pairs == [(f"'{OURS}'", f"'{KAIS}'")] for pairs in found.values()), found
    files = (path.read_text() for path in (DEPLOY / "policies").glob("*.yaml"))
    assert len(found) == sum(text.count("- name: queueLabel") for text in files) >= 4


def test_the_webhook_is_asked_about_the_other_key(changed: Path) -> None:
    (pairs,) = differences("webhook", changed).values()

    assert len(pairs) == 2
    assert all(before.replace(OURS, KAIS) == after != before for before, after in pairs)
    assert not [path for path in (changed / "webhook").glob("*.yaml") if OURS in _code(path)]


def _code(path: Path) -> str:
    return "\n".join(re.findall(r"^ *[^ #].*$", path.read_text(), re.MULTILINE))


def test_the_components_read_the_other_key(changed: Path) -> None:
    plugin, webhook = (
        document["spec"]["template"]["spec"]["containers"][-1]
        for path in changed_files("manifests", changed)
        for document in read(path)
    )

    assert parse_webhook_settings(webhook["args"], {}).accounting.queue_label == KAIS
    settings = parse_plugin_settings(plugin["command"][1:], {})
    assert isinstance(settings, ServeSettings)
    assert settings.accounting.queue_label == KAIS
