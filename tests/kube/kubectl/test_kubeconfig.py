"""Which files count, and which context of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.kubectl.kubeconfig import (
    Choice,
    choice_of,
    current_context,
    current_namespace,
    has_context,
    has_login,
)


def a_file(path: Path, current: str = "", **namespaces: str) -> Path:
    """A kubeconfig with a context of each name, in such a namespace."""
    contexts = [
        {"name": name, "context": {"cluster": "c", "user": "u", "namespace": namespace}}
        for name, namespace in namespaces.items()
    ]
    config: dict[str, Any] = {"contexts": contexts, "clusters": None}
    if current:
        config["current-context"] = current
    path.write_text(yaml.safe_dump(config))
    return path


def namespace(choice: Choice) -> str | None:
    found = current_context(choice)
    return None if found is None else found["namespace"]


def test_the_first_current_context_and_the_first_of_its_name_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (
        tmp_path / "absent",
        a_file(tmp_path / "one", a="of-one"),
        a_file(tmp_path / "two", "b", a="of-two", b="b-of-two"),
        a_file(tmp_path / "three", "a", b="b-of-three"),
    )
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))

    assert namespace(Choice()) == "b-of-two"
    assert namespace(Choice(context="a")) == "of-one"
    assert namespace(Choice(context="missing")) is None
    assert namespace(Choice(files[3])) is None
    assert namespace(Choice(files[3], "b")) == "b-of-three"


def test_the_file_in_the_home_folder_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not Choice().has_files()
    (tmp_path / ".kube").mkdir()
    a_file(tmp_path / ".kube" / "config", "a", a="home")

    assert Choice().has_files()
    assert namespace(Choice()) == "home"


def test_a_file_that_cannot_be_looked_at_is_absent(tmp_path: Path) -> None:
    """As in a folder that may not be entered; a path that is too long is one for root, too."""
    choice = Choice(tmp_path / ("a" * 300))

    assert not choice.has_files()
    assert current_context(choice) is None
    assert current_namespace(choice) == "default"


@pytest.mark.parametrize("text", ["", "[]", "contexts: 3", "{", "contexts: [{name: a}]\x00", "a"])
def test_a_damaged_file_has_no_context(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)

    assert current_context(Choice(file)) is None
    assert not has_login(Choice(file))


def test_files_of_the_environment_are_for_kubectl_to_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flag is told by KUBECONFIG, too, and names one file."""
    several = f"{tmp_path}/a:{tmp_path}/b"
    monkeypatch.setenv("KUBECONFIG", several)

    assert choice_of(Path(several), "").flags == ()
    assert choice_of(Path("c"), "d").flags == ("--kubeconfig=c", "--context=d")


@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ("utf-8", "namespace"),
        ("utf-8", '"namespace"'),
        ("utf-8", r'"\x6eamespace"'),
        ("utf-8", r'"n\u0061mespace"'),
        ("utf-16", "namespace"),
    ],
)
def test_the_namespace_is_seen_however_it_is_written(
    encoding: str, key: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    text = f"{{current-context: a, contexts: [{{name: a, context: {{{key}: team}}}}]}}"
    file.write_bytes(text.encode(encoding))

    assert current_namespace(Choice(file)) == "team"


@pytest.mark.parametrize(
    "text", ["", "{", "current-context: a\ncontexts: [{name: a, context: {}}]"]
)
def test_a_file_without_one_means_the_default_namespace(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)

    assert current_namespace(Choice(file)) == "default"
    assert current_namespace(Choice(tmp_path)) == "default"
    assert current_namespace(Choice(tmp_path / "absent")) == "default"


def test_a_namespace_of_another_context_does_not_count(tmp_path: Path) -> None:
    file = a_file(tmp_path / "config", "a", a="", b="team")

    assert current_namespace(Choice(file)) == "default"
    assert current_namespace(Choice(file, "b")) == "team"


CONTEXTS = "\ncontexts: [{name: a, context: {cluster: c}}, {name: 'null', context: {cluster: c}}]\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("current-context: a", True),
        ('current-context: "a"', True),
        ("# none\ncurrent-context: 'null'", True),
        ("{current-context: a, contexts: [{name: a, context: {cluster: c}}]}", True),
        ("", False),
        ("# current-context: a", False),
        ("current-context: null", False),
        ("current-context: ''", False),
        ("current-context: ~", False),
        ("current-context: # a", False),
        ("extensions:\n  current-context: a", False),
        ("current-context:\nkind: Config", False),
    ],
)
def test_a_context_is_current_however_that_is_written(
    text: str, found: bool, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(text if text.startswith("{") else text + CONTEXTS)

    assert has_context(Choice(file)) is found
    assert has_context(Choice(file, "b"))


def test_a_current_context_that_is_said_plainly_needs_no_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its import takes longer than all else that is done before kubectl starts."""
    monkeypatch.setitem(sys.modules, "yaml", None)

    assert has_context(Choice(a_file(tmp_path / "config", "a", a="")))
    with pytest.raises(ImportError):
        has_context(Choice(a_file(tmp_path / "config", a="")))
