"""How the programs of the local cluster are linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster import programs
from local_cluster.cache import cache_dir
from local_cluster.errors import BuildError
from local_cluster.go_toolchain import MODULES
from local_cluster.settings import KUBERNETES_VERSIONS

ALL = (
    *map(programs.kubernetes, KUBERNETES_VERSIONS),
    *map(programs.kube_scheduler, KUBERNETES_VERSIONS),
    programs.ETCD,
    programs.CONTAINERD,
    programs.CNI,
    programs.HELM,
    programs.KUBEADM,
    programs.VENDOR_DEVICES,
    programs.DISCOVERY_PEER,
    programs.OPCUA_MACHINES,
)


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_every_module_pins_its_upstream_and_all_checksums(program: programs.Program) -> None:
    module = MODULES / program.module

    version = programs.required_version((module / "go.mod").read_text(), program.requirement)

    assert f"{program.requirement} {version} h1:" in (module / "go.sum").read_text()


def test_kubernetes_learns_its_version_from_the_linker() -> None:
    flags = programs.linker_flags("require k8s.io/kubernetes v1.37.2\n")

    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in flags
    assert "-X k8s.io/component-base/version.gitMinor=37" in flags


def test_programs_of_a_module_without_kubernetes_learn_nothing() -> None:
    assert programs.linker_flags("require google.golang.org/grpc v1.83.2\n") == "-s -w"


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_own_sources_are_in_the_folders_that_tell_builds_apart(program: programs.Program) -> None:
    own = [package for package in program.packages if package.startswith(".")]

    assert all((MODULES / program.module / package / "main.go").is_file() for package in own)
    assert set(own) <= set(program.folders)


def test_no_two_programs_of_the_newest_module_are_written_to_one_file() -> None:
    found = [
        name
        for program in ALL
        if program.module == programs.NEWEST_MODULE
        for name in program.binaries
    ]

    assert len(found) == len(set(found))


def test_two_programs_of_one_module_are_cached_apart() -> None:
    assert programs.kube_scheduler("1.37").name != programs.kubernetes("1.37").name


def test_one_command_compiles_without_c_and_writes_into_a_folder() -> None:
    packages = (*programs.ETCD.packages, *programs.CNI.packages)

    argv = programs.build_argv(packages, "module m\n", Path("/out"))

    assert argv[-len(packages) - 2 :] == ("-o", "/out/", *packages)
    assert programs.ENVIRONMENT["CGO_ENABLED"] == "0"
    assert not {"-N", "-l"} & set(" ".join(argv).replace("=", " ").split())


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
