"""The version that was landed before: its chart, its definitions, and its image.

It is a commit, since no version was released yet. Whoever lands a version names here the one that
clusters are to be upgraded from.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from moorage_demo.installation import ROOT

COMMIT = "a044861660033f38a33d0d11ed2bc373b87b781c"
TAG = "earlier"

CHECKOUT = "earlier"
CHART_IN_CHECKOUT = "deploy/helm/moorage"
EARLIER_CHART = f"{CHECKOUT}/{CHART_IN_CHECKOUT}"
"""The chart of the version before, in the folder that `earlier` was given."""


BUILD = """\
import sys
from pathlib import Path
from local_cluster.image_build import build_into
build_into(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
"""


class EarlierError(Exception):
    """Raised when the version before cannot be had."""


@dataclass(frozen=True)
class Earlier:
    """A version before, unpacked.

    Attributes:
        checkout: Its files.
        image: A docker-archive of its image, `moorage:earlier`.
    """

    checkout: Path
    image: Path

    @property
    def chart(self) -> Path:
        return self.checkout / CHART_IN_CHECKOUT


def earlier(folder: Path) -> Earlier:
    """Unpack the version before into a folder, and build its image by its own builder.

    Today's reads files of today, and may make the image of another Debian.
    """
    checkout = folder / CHECKOUT
    unpack(COMMIT, checkout)
    image = folder / "earlier.tar"
    _build_into(image, checkout)
    return Earlier(checkout, image)


def _build_into(image: Path, checkout: Path) -> None:
    built = subprocess.run(
        (sys.executable, "-c", BUILD, str(image), f"moorage:{TAG}", str(checkout)),
        env={**os.environ, "PYTHONPATH": str(checkout / "deploy/local")},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        raise EarlierError(f"the image of {COMMIT[:7]} is not built: {built.stderr[-2000:]}")


def unpack(commit: str, target: Path, repository: Path = ROOT) -> None:
    """The files of a commit, which a shallow clone asks its origin for.

    Raises:
        EarlierError: If neither has it.
    """
    if not _has(repository, commit):
        _git(repository, "fetch", "--quiet", "--depth=1", "origin", commit)
    if not _has(repository, commit):
        raise EarlierError(
            f"the version to upgrade from, {commit[:7]}, is not in the history of {repository}, "
            f"and its origin gives it to nobody: `git fetch --unshallow` brings all of them"
        )
    packed = _git(repository, "archive", "--format=tar", commit)
    if packed.returncode != 0:
        raise EarlierError(f"git archive {commit[:7]}: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        tar.extractall(target, filter="data")


def _has(repository: Path, commit: str) -> bool:
    return _git(repository, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def _git(repository: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    argv = ("git", "-C", str(repository), *args)
    return subprocess.run(argv, capture_output=True, check=False)
