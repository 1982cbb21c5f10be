"""Which programs a cluster is made of, and how each is linked from its Go module.

Versions stand in the go.mod of each module and nowhere else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_cluster.errors import BuildError

KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
)
KUBERNETES = "k8s.io/kubernetes"
NEWEST = "1.37"
NEWEST_MODULE = "programs"
"""All programs around the newest Kubernetes: what two of them import has one version there."""

# Bumped when the way of linking changes, since it is not part of a module's files.
RECIPE = "2"
# Parts of containerd that no cluster here configures, and that it can be compiled without.
TAGS = ("no_btrfs", "no_devmapper", "no_tracing", "no_zfs", "nri_no_wasm")
# Without C's compiler and linker. What is compiled is the same for all programs, in images, too.
ENVIRONMENT: Mapping[str, str] = {"CGO_ENABLED": "0"}
# The code stays what it is: only the tables for debuggers, which the linker drops, are not made.
COMPILER_FLAGS = "all=-dwarf=false"
# Of Go's own programs while they compile: they collect garbage less often, within a gigabyte or so.
COMPILING: Mapping[str, str] = {"GOGC": "400", "GOMEMLIMIT": "1500MiB"}


@dataclass(frozen=True)
class Program:
    """One or several commands of a Go module of ours, linked into a folder of their own."""

    name: str
    module: str
    requirement: str
    """The upstream module whose version the build carries."""
    packages: tuple[str, ...]
    """What `go build` is asked for: `.`, folders of the module, packages of upstream's."""
    links: tuple[str, ...] = ()
    """Names under which the first binary is called, too."""

    @property
    def binaries(self) -> tuple[str, ...]:
        """What `go build` calls them: the last element of each package's path."""
        named = (self.module if package == "." else package for package in self.packages)
        return tuple(name.rpartition("/")[2] for name in named)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the module that hold its sources."""
        return (".", *(name for name in self.packages if name.startswith("./")))


def kubernetes(version: str) -> Program:
    module = _kubernetes_module(version)
    packages = ("./kubernetes", f"{KUBERNETES}/cmd/kubectl")
    return Program(f"kubernetes-{version}", module, KUBERNETES, packages, KUBERNETES_PROGRAMS)


def kube_scheduler(version: str) -> Program:
    """The scheduler alone, for an image: less than half of the binary of all programs."""
    module, packages = _kubernetes_module(version), ("./kube-scheduler",)
    return Program(f"kube-scheduler-{version}", module, KUBERNETES, packages)


def _kubernetes_module(version: str) -> str:
    return NEWEST_MODULE if version == NEWEST else f"kubernetes-{version}"


def _upstream(name: str, requirement: str, *commands: str) -> Program:
    packages = tuple(f"{requirement}/{command}" for command in commands)
    return Program(name, NEWEST_MODULE, requirement, packages)


ETCD = Program("etcd", NEWEST_MODULE, "go.etcd.io/etcd/server/v3", ("./etcd",))
CONTAINERD = _upstream(
    "containerd",
    "github.com/containerd/containerd/v2",
    *("cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"),
)
CNI = _upstream(
    "cni",
    "github.com/containernetworking/plugins",
    *("plugins/ipam/host-local", "plugins/main/loopback"),
    *("plugins/main/ptp", "plugins/meta/portmap"),
)
HELM = _upstream("helm", "helm.sh/helm/v4", "cmd/helm")
"""Renders and installs the chart; no part of a cluster."""

KUBEADM = _upstream("kubeadm", KUBERNETES, "cmd/kubeadm")
"""Makes kubeconfigs on control planes of its own, as pages say; no part of a cluster."""

VENDOR_DEVICES = Program(
    "vendor-devices",
    NEWEST_MODULE,
    "k8s.io/dynamic-resource-allocation",
    ("./vendor-devices",),
)
"""Another vendor's DRA driver, for tests and demos; no part of a cluster."""

DISCOVERY_PEER = Program("discovery-peer", "discovery-peer", "google.golang.org/grpc", (".",))
"""The other end of Akri's discovery contract, for tests; no part of a cluster."""

OPCUA_MACHINES = Program("opcua-machines", "opcua-machines", "github.com/gopcua/opcua", (".",))
"""Servers to be discovered, for tests; no part of a cluster."""


def required_version(go_mod: str, requirement: str) -> str:
    found = re.search(rf"^(?:require )?\s*{re.escape(requirement)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise BuildError(f"go.mod does not require {requirement}")
    return found.group(1)


def linker_flags(go_mod: str) -> str:
    """Kubernetes learns its version from the linker; without it parts refuse each other."""
    flags = ["-s", "-w"]
    if KUBERNETES in go_mod:
        version = required_version(go_mod, KUBERNETES)
        major, minor = version.removeprefix("v").split(".")[:2]
        facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in facts.items()]
            flags.append(f"-X {package}.gitTreeState=clean")
    return " ".join(flags)


def list_argv(packages: Sequence[str]) -> tuple[str, ...]:
    """All packages that these are compiled from, a line each; fetches the modules."""
    return ("list", "-deps", f"-tags={','.join(TAGS)}", *packages)


def build_argv(packages: Sequence[str], go_mod: str, output: Path) -> tuple[str, ...]:
    """One command for all: two that run beside each other compile what they share twice."""
    return (
        *("build", "-v", "-trimpath", "-buildvcs=false", f"-tags={','.join(TAGS)}"),
        *(f"-gcflags={COMPILER_FLAGS}", f"-ldflags={linker_flags(go_mod)}"),
        # A trailing slash makes go write each command below the folder.
        *("-o", f"{output}/", *packages),
    )


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
    kubelets: Path
    """Programs of the kubelets' version."""

    @property
    def kubectl(self) -> str:
        return str(self.kubernetes / "kubectl")

    @property
    def ctr(self) -> str:
        return str(self.containerd / "ctr")
