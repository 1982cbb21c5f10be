"""How the programs of the local cluster are linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster import programs
from local_cluster.errors import BuildError
from local_cluster.go_toolchain import MODULES, cache_dir

ALL = (
    programs.kubernetes("1.36"),
    programs.kubernetes("1.34"),
    programs.kubernetes("1.33"),
    programs.kube_scheduler("1.36"),
    programs.ETCD,
    programs.CONTAINERD,
    programs.CNI,
)


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_every_module_pins_its_upstream_and_all_checksums(program: programs.Program) -> None:
    module = MODULES / program.module

    version = programs.required_version((module / "go.mod").read_text(), program.requirement)

    assert f"{program.requirement} {version} h1:" in (module / "go.sum").read_text()


def test_kubernetes_learns_its_version_from_the_linker() -> None:
    flags = programs.linker_flags(programs.kubernetes("1.36"), "v1.36.3")

    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags


def test_a_program_for_an_image_needs_no_library() -> None:
    scheduler = programs.kube_scheduler("1.36")

    assert "-extldflags -static" in programs.linker_flags(scheduler, "v1.36.3")
    assert "-static" not in programs.linker_flags(programs.kubernetes("1.36"), "v1.36.3")
    assert programs.build_argv(scheduler, "v1.36.3", Path("/out"))[-3:] == (
        "-o",
        "/out/kube-scheduler",
        "./kube-scheduler",
    )
    assert (MODULES / scheduler.module / scheduler.folder / "main.go").is_file()


def test_two_programs_of_one_module_are_cached_apart() -> None:
    assert programs.kube_scheduler("1.36").name != programs.kubernetes("1.36").name


def test_tools_are_written_into_a_folder() -> None:
    argv = programs.build_argv(programs.CNI, "v1.0.0", Path("/out"))

    assert argv[-3:] == ("-o", "/out/", "tool")


def test_requirement_that_go_mod_lacks_is_named() -> None:
    with pytest.raises(BuildError, match=r"does not require example\.com/x"):
        programs.required_version("module m\n", "example.com/x")


@pytest.mark.parametrize(
    ("files", "go_version"),
    [({"go.mod": b"b"}, "go1"), ({"main.go": b"a"}, "go1"), ({"go.mod": b"a"}, "go2")],
)
def test_other_sources_or_toolchain_mean_another_build(
    files: dict[str, bytes], go_version: str
) -> None:
    before = programs.content_hash({"go.mod": b"a"}, "go1")

    assert programs.content_hash(files, go_version) != before


def test_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOORAGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/xdg/moorage")

    monkeypatch.setenv("MOORAGE_CACHE", "/own")
    assert cache_dir() == Path("/own")
