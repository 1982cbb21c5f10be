"""Which programs a cluster is made of, and how each is linked from its Go module.

Versions stand in the go.mod of each module and nowhere else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local_cluster.errors import BuildError

KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
CNI_PROGRAMS = ("host-local", "loopback", "portmap", "ptp")
CONTAINERD_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
# Bumped when the way of linking changes, since it is not part of a module's files.
RECIPE = "1"


@dataclass(frozen=True)
class Program:
    """One Go module of ours and what it is linked into."""

    module: str
    requirement: str
    """The upstream module whose version the build carries."""
    package: str
    """What `go build` is asked for: `.`, a folder of it, or `tool` (all tools of go.mod)."""
    binaries: tuple[str, ...]
    links: tuple[str, ...] = ()
    """Names under which the first binary is called, too."""
    static: bool = False
    """Whether it runs where there is no C library, such as in an image of its own."""

    @property
    def folder(self) -> str:
        """The folder of the package inside the module; empty for the module's own."""
        return self.package.removeprefix("./") if self.package.startswith("./") else ""

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.module, self.folder)))


def kubernetes(version: str) -> Program:
    return Program(
        f"kubernetes-{version}", "k8s.io/kubernetes", ".", ("kubernetes",), KUBERNETES_PROGRAMS
    )


def kube_scheduler(version: str) -> Program:
    """The scheduler alone, for an image: less than half of the binary of all programs."""
    return Program(
        f"kubernetes-{version}",
        "k8s.io/kubernetes",
        "./kube-scheduler",
        ("kube-scheduler",),
        static=True,
    )


ETCD = Program("etcd", "go.etcd.io/etcd/server/v3", ".", ("etcd",))
CONTAINERD = Program(
    "containerd", "github.com/containerd/containerd/v2", "tool", CONTAINERD_PROGRAMS
)
DISCOVERY_PEER = Program("discovery-peer", "google.golang.org/grpc", ".", ("discovery-peer",))
"""The other end of Akri's discovery contract, for tests; no part of a cluster."""

OPCUA_MACHINES = Program("opcua-machines", "github.com/gopcua/opcua", ".", ("opcua-machines",))
"""Servers to be discovered, for tests; no part of a cluster."""

HELM = Program("helm", "helm.sh/helm/v4", "tool", ("helm",))
"""Renders and installs the chart; no part of a cluster."""

KUBEADM = Program("kubeadm", "k8s.io/kubernetes", "tool", ("kubeadm",))
"""Makes kubeconfigs on control planes of its own, as pages say; no part of a cluster."""

CNI = Program("cni", "github.com/containernetworking/plugins", "tool", CNI_PROGRAMS)


def required_version(go_mod: str, requirement: str) -> str:
    found = re.search(rf"^(?:require )?\s*{re.escape(requirement)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise BuildError(f"go.mod does not require {requirement}")
    return found.group(1)


def linker_flags(program: Program, version: str) -> str:
    """Kubernetes learns its version from the linker; without it parts refuse each other.

    A static program is linked by C's linker from the packages that are compiled already: without
    cgo, all of them would be compiled once more.
    """
    flags = ["-s", "-w"]
    if program.static:
        flags.append("-linkmode external -extldflags -static")
    if program.requirement == "k8s.io/kubernetes":
        major, minor = version.removeprefix("v").split(".")[:2]
        facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in facts.items()]
            flags.append(f"-X {package}.gitTreeState=clean")
    return " ".join(flags)


def build_argv(program: Program, version: str, output: Path) -> tuple[str, ...]:
    ldflags = linker_flags(program, version)
    target = output if program.package == "tool" else output / program.binaries[0]
    # A trailing slash makes go write each tool below the folder.
    out = f"{target}/" if program.package == "tool" else str(target)
    return ("go", "build", "-v", "-trimpath", "-ldflags", ldflags, "-o", out, program.package)


def content_hash(files: Mapping[str, bytes], go_version: str) -> str:
    """Same sources, same toolchain, same recipe: same binary."""
    digest = hashlib.sha256(f"{RECIPE} {go_version}".encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Binaries:
    """Where the linked programs of one cluster lie."""

    kubernetes: Path
    etcd: Path
    containerd: Path
    cni: Path

    @property
    def kubectl(self) -> str:
        return str(self.kubernetes / "kubectl")

    @property
    def ctr(self) -> str:
        return str(self.containerd / "ctr")
