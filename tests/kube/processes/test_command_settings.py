"""Settings of one name on the command line, in the environment and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from kube.processes.api import Config, commands, parsed, refuse, settings_of

Settings = tuple[int, str, bool]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no number")
    return int(text)


Pods = Annotated[int, parsed(_number, metavar="NUMBER", shown="1")]


def an_app(*, alone: bool) -> typer.Typer:
    app = commands("moorage-test", "For a test.")

    @app.command()
    def serve(
        most_pods: Pods = 1,
        node_name: Annotated[str, typer.Option(envvar="NODE_NAME")] = "",
        loud: Annotated[bool, typer.Option("--loud")] = False,
        config: Config = "",
    ) -> Settings:
        if most_pods == 13:
            raise refuse("--most-pods: not that many")
        return most_pods, node_name, loud

    if not alone:

        @app.command()
        def other() -> Settings:
            return 0, "", False

    return app


def told(*argv: str, alone: bool = True, environ: Mapping[str, str] | None = None) -> Any:
    return settings_of(an_app(alone=alone), argv, environ or {})


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("most-pods: 7\nnode-name: of-the-file\nloud: true\n")
    flag = f"--config={file}"

    assert told() == (1, "", False)
    assert told(flag) == (7, "of-the-file", True)
    assert told(flag, environ={"MOORAGE_MOST_PODS": "8", "NODE_NAME": "n"}) == (8, "n", True)
    of_both = told(flag, "--most-pods=9", environ={"MOORAGE_MOST_PODS": "8"})
    assert of_both == (9, "of-the-file", True)
    assert told(environ={"MOORAGE_CONFIG": str(file)}) == (7, "of-the-file", True)


def test_each_command_of_several_has_its_own() -> None:
    assert told("serve", alone=False, environ={"MOORAGE_MOST_PODS": "8"}) == (8, "", False)
    assert told("other", alone=False, environ={"MOORAGE_MOST_PODS": "8"}) == (0, "", False)


def test_an_empty_variable_says_nothing() -> None:
    assert told(environ={"MOORAGE_MOST_PODS": "", "NODE_NAME": ""}) == (1, "", False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("most-pods: many", "'many' is no number"),
        ("most_pods: 1", "most_pods: there is no such setting"),
        ("config: a", "config: there is no such setting"),
        ("- 1", "a mapping of settings is expected"),
        ("a: [", "this is not YAML"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_of_no_sense_is_refused_with_what_is_wrong(
    content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.yaml"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SystemExit) as ended:
        told(f"--config={file}")

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "environ", "said"),
    [
        (("--most-pods=many",), {}, "'--most-pods': 'many' is no number"),
        ((), {"MOORAGE_MOST_PODS": "many"}, "'--most-pods': 'many' is no number"),
        (("--most-pods=13",), {}, "--most-pods: not that many"),
        (("--unknown",), {}, "--unknown"),
    ],
)
def test_nonsense_is_refused_with_the_flag(
    argv: tuple[str, ...],
    environ: dict[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        told(*argv, environ=environ)

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_help_tells_flags_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        told("--help")

    assert ended.value.code == 0
    assert "--most-pods NUMBER" in capsys.readouterr().out
