"""Images and chart carried to a cluster that can fetch nothing, word for word as pages say."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local_cluster import programs
from local_cluster.api import BUSYBOX_OF_PAGES, Cluster, Component, Mode
from local_cluster.cache import cache_dir
from local_cluster.debian import ensure_packages
from local_cluster.go_toolchain import ensure_built
from local_cluster.image_build import TAG, build_into, read_sources
from local_cluster.image_oci import Written
from local_cluster.image_pins import Pins, written
from local_cluster.image_recipe import CHECKOUT
from local_cluster.image_release import ARCHITECTURES, build_all, packages_of, release
from local_cluster.scheduler_image import build_scheduler_image
from tests.e2e import documented, rights
from tests.e2e.charts import bare_cluster

NODE = "node-a"
INSIDE, OUTSIDE = "registry.internal", "registry.k8s.io"
ADDRESSES = {INSIDE: "127.0.0.1", OUTSIDE: "127.0.0.2"}
"""Of the node's loopback; nothing else of these names is in its reach."""

KUBE_SCHEDULER = "kube-scheduler:v1.37.2"
IMAGE_PAGE = CHECKOUT / "deploy/image/README.md"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Its node has no image of Moorage's, and knows two registries by name."""
    ensure_packages({"skopeo": "skopeo", "docker-registry": "docker-registry"})
    with bare_cluster("air-gapped", images=False) as own:
        node = own.node(NODE)
        with node.path("/etc/hosts").open("a") as hosts:
            hosts.writelines(f"{address} {name}\n" for name, address in ADDRESSES.items())
        trusted = own.issue_certificate("registry", (*ADDRESSES,)).ca.read_bytes()
        node.path("/etc/ssl/certs/registry.crt").write_bytes(trusted)
        yield own
        rights.note(own.logs)


def ctr() -> str:
    return str(ensure_built(programs.CONTAINERD) / "ctr")


@contextmanager
def registry(cluster: Cluster, name: str, folder: Path) -> Iterator[None]:
    """A registry that speaks TLS under its name, and has nothing at first."""
    found = cluster.issue_certificate("registry", (*ADDRESSES,))
    address = ADDRESSES[name]
    http = {
        "addr": f"{address}:443",
        "tls": {"certificate": str(found.certificate), "key": str(found.key)},
    }
    storage = {"filesystem": {"rootdirectory": str(folder / name)}}
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"version": "0.1", "storage": storage, "http": http}))
    argv = ("docker-registry", "serve", str(file))
    component = Component(name=name.replace(".", "-"), argv=argv, node=NODE, cwd=folder)
    handle = cluster.start_component(component, Mode.PROCESS)
    connect = ("bash", "-c", f": < /dev/tcp/{address}/443")
    node = cluster.node(NODE)
    try:
        cluster.wait_until(name, lambda: node.exec(connect, check=False).returncode == 0)
        yield
    finally:
        handle.stop()


@pytest.fixture
def programs_of_the_node(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types `skopeo` and `ctr` is on the node, in the folder that he is in."""
    enter = cluster.node(NODE).argv(("sh", "-c", 'cd "$0" && exec "$@"'))
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("skopeo", ctr()):
        file = folder / Path(program).name
        file.write_text(f'#!/bin/sh\nexec {shlex.join(enter)} "$PWD" {program} "$@"\n')
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As after `make image`."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "deploy").symlink_to(CHECKOUT / "deploy")
    (folder / ".venv").symlink_to(sys.prefix)
    build_into(folder / ".artifacts/moorage.tar", "moorage:local")
    return folder


@pytest.fixture(scope="module")
def image(checkout: Path) -> Written:
    """As after `make images`, but of Debian's packages of the moment (see test_image_release)."""
    sources = read_sources(CHECKOUT)
    images = build_all(sources, cache_dir())
    pins = Pins.parse(written(packages_of(images)))
    return release(sources, pins, images, checkout / ".artifacts/images")


def raw(cluster: Cluster, name: str) -> str:
    """An image's manifest, byte for byte as the registry keeps it."""
    inspect = ("skopeo", "inspect", "--raw", f"docker://{INSIDE}/{name}")
    return cluster.node(NODE).exec(inspect).stdout


def on_node(cluster: Cluster) -> set[str]:
    """What its containerd knows images as, but for those of the cluster itself and of tests."""
    listed = cluster.node(NODE).exec((ctr(), "--namespace", "k8s.io", "images", "list", "-q"))
    names = {name for name in listed.stdout.split() if not name.startswith("sha256:")}
    return {name for name in names if "moorage.test/" not in name and BUSYBOX_OF_PAGES not in name}


@pytest.mark.usefixtures("programs_of_the_node")
def test_what_is_carried_over_is_all_that_an_installation_fetches(
    cluster: Cluster, checkout: Path, image: Written, tmp_path: Path
) -> None:
    fetch, carry, install = documented.section("Air-gapped").partition("\nCopy ")
    with registry(cluster, OUTSIDE, tmp_path):
        kubernetes_publishes(cluster, checkout)
        documented.follow_text(cluster, "INSTALL.md", fetch, checkout)
    inside = tmp_path / "inside"
    shutil.copytree(checkout / ".artifacts/images", inside / ".artifacts/images")
    for name in ("kube-scheduler.oci.tar", "moorage-0.2.0.tgz"):
        shutil.copy(checkout / name, inside)
    assert on_node(cluster) == set()

    with registry(cluster, INSIDE, tmp_path):
        documented.follow_text(cluster, "INSTALL.md", f"{carry}{install}", inside)

        scheduler = hashlib.sha256(raw(cluster, KUBE_SCHEDULER).encode()).hexdigest()
        assert on_node(cluster) == {
            f"{INSIDE}/moorage@{image.digest}",
            f"{INSIDE}/{KUBE_SCHEDULER}",
            f"{INSIDE}/kube-scheduler@sha256:{scheduler}",
        }


def kubernetes_publishes(cluster: Cluster, folder: Path) -> None:
    archive = build_scheduler_image(folder)
    target = f"docker://{OUTSIDE}/{KUBE_SCHEDULER}"
    cluster.node(NODE).exec(("skopeo", "copy", f"docker-archive:{archive}", target))


@pytest.mark.usefixtures("programs_of_the_node")
def test_an_image_that_was_built_is_pushed_and_imported_as_pages_say(
    cluster: Cluster, checkout: Path, image: Written, tmp_path: Path
) -> None:
    imported = f"docker.io/library/{TAG}"
    with registry(cluster, INSIDE, tmp_path):
        page = documented.section("Images")
        documented.follow_text(cluster, "INSTALL.md", page, checkout)

        whole = raw(cluster, "moorage:0.2.0")
        assert f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}" == image.digest
        found = {m["platform"]["architecture"]: m["digest"] for m in json.loads(whole)["manifests"]}
        assert found == image.platforms
        assert found.keys() == {*ARCHITECTURES}
        assert json.loads(raw(cluster, "moorage:0.2.0-amd64"))["layers"]
    assert imported in on_node(cluster)

    cluster.remove_image(imported)
    assert imported not in on_node(cluster)
    documented.follow_text(cluster, IMAGE_PAGE.name, IMAGE_PAGE.read_text(), checkout)
    assert imported in on_node(cluster)
