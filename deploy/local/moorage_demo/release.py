"""Moorage as users install it: by its chart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_cluster import programs
from local_cluster.api import Cluster
from local_cluster.cache import cache_dir
from local_cluster.go_toolchain import build_all, ensure_all
from local_cluster.helm import run_helm
from local_cluster.image_build import TAG, build_layers, read_sources
from local_cluster.progress import say
from local_cluster.steps import step
from moorage_demo.installation import NAMESPACE, ROOT, SECONDS, is_trusted, load_images

CHART = ROOT / "deploy/helm/moorage"
VALUES = ROOT / "deploy/helm/local-values.yaml"
CRDS = ROOT / "deploy/crds"
IN_NAMESPACE = f"--namespace={NAMESPACE}"
WAIT = ("--wait", f"--timeout={SECONDS:.0f}s")


def begin_preparing(kubernetes: str) -> Callable[[], None]:
    """Make what a release needs beside its cluster, which is made meanwhile.

    The image's packages are fetched while the cluster's programs are compiled. Helm and the
    scheduler for its image come next: their packages are mostly those of the cluster's programs.

    Returns:
        Waits until all of it is made, and raises what went wrong.
    """
    pool = ThreadPoolExecutor()
    image = pool.submit(build_layers, read_sources(ROOT), cache_dir())
    linked = pool.submit(_link, kubernetes)
    pool.shutdown(wait=False)

    def finish() -> None:
        with step("waiting for images and Helm, which are made beside the cluster"):
            image.result()
            linked.result()

    return finish


def _link(kubernetes: str) -> None:
    build_all(kubernetes, with_nodes=True)
    ensure_all([programs.kube_scheduler(kubernetes), programs.HELM])


def install_release(cluster: Cluster, *options: str) -> None:
    """Load the images, install the chart with further options, and wait until all pods serve."""
    _load_images(cluster)
    with step("the chart is installed, and its pods serve"):
        run_helm(
            *("install", "moorage", str(CHART), *_values(cluster), *options, *WAIT),
            kubeconfig=cluster.kubeconfig,
        )
        cluster.wait_until("the API server trusts the webhook", lambda: is_trusted(cluster))


def upgrade_release(cluster: Cluster) -> None:
    """Install the chart, or upgrade what is there, to what this checkout holds; repeatable."""
    tag = _tagged_by_content(cluster, _load_images(cluster))
    _end_what_was_interrupted(cluster)
    say("definitions are applied")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    cluster.kubectl("wait", "--for=condition=Established", "-f", str(CRDS), "--timeout=60s")
    with step(f"the chart is upgraded, and its pods serve, within {SECONDS:.0f} s"):
        run_helm(
            *("upgrade", "--install", "moorage", str(CHART), *_values(cluster)),
            *(f"--set=image.tag={tag}", *WAIT),
            kubeconfig=cluster.kubeconfig,
        )
        cluster.wait_until("the API server trusts the webhook", lambda: is_trusted(cluster))


def _load_images(cluster: Cluster) -> Path:
    """Into the nodes; returns the archive of Moorage's own."""
    with step("images are loaded into the nodes"):
        return load_images(cluster)


def _values(cluster: Cluster) -> tuple[str, ...]:
    by_hand = ("--set=driver.path=dra",) if cluster.settings.has_dra_by_hand else ()
    return (
        *(IN_NAMESPACE, "--create-namespace", f"--values={VALUES}", "--set=namespace.create=false"),
        *by_hand,
    )


def _tagged_by_content(cluster: Cluster, archive: Path) -> str:
    """A tag for this image alone: with one that stays, an upgrade would replace no pod."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:12]
    repository = TAG.partition(":")[0]
    tag = f"local-{digest}"
    cluster.tag_image(f"docker.io/library/{TAG}", f"docker.io/library/{repository}:{tag}")
    return tag


def _end_what_was_interrupted(cluster: Cluster) -> None:
    """Helm refuses every step while it knows of one that goes on, be its process dead or not."""
    words = ("status", "moorage", IN_NAMESPACE, "--output=json")
    done = run_helm(*words, kubeconfig=cluster.kubeconfig, check=False)
    if done.returncode != 0:
        return
    found = json.loads(done.stdout)
    status, revision = found["info"]["status"], found["version"]
    if command := after_interruption(status, revision):
        say(f"the release is {status}, as an earlier step was interrupted: helm {command[0]}")
        run_helm(*command, IN_NAMESPACE, *WAIT, kubeconfig=cluster.kubeconfig)


def after_interruption(status: str, revision: int) -> tuple[str, ...] | None:
    """The command that ends what a release is in the middle of; None where it is in none."""
    match status:
        case "pending-install":
            return ("uninstall", "moorage", "--no-hooks")
        case "pending-upgrade" | "pending-rollback":
            return ("rollback", "moorage")
        case "uninstalling":
            return ("rollback", "moorage", str(revision))
        case _:
            return None
