"""Runs the image's own interpreter from outside: it installs and compiles what it will import.

Its loader takes the libraries from the unpacked tree, so neither a container nor root is needed,
and the Python that runs this tool may be of any version.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_cluster.errors import BuildError
from local_cluster.image_layers import remove_matching
from local_cluster.image_recipe import Components, Recipe

PIP_SECONDS = 900
COMPILE_SECONDS = 300
# Fixed, not the number of cores: how files are split decides their bytes.
COMPILERS = 2
# Of wheels: the C library that a manylinux name allows, up to Debian 13's.
OLDEST_LIBC, NEWEST_LIBC = 17, 41
SCRIPT = """\
#!/usr/bin/python{python} -sP
import sys

from {module} import {function}

sys.exit({function}())
"""


class ImagePython:
    """The interpreter in an unpacked tree of the base layer."""

    def __init__(self, recipe: Recipe, tree: Path, precompile: Path) -> None:
        self._precompile = precompile
        loader = next(iter(sorted(tree.glob("usr/lib/*-linux-gnu*/ld-linux*"))), None)
        if loader is None:
            raise BuildError(f"{tree} holds no dynamic loader: remove it and build again")
        libraries = tree.glob("usr/lib/*-linux-gnu*")
        path = ":".join(map(str, sorted(libraries)))
        python = tree / f"usr/bin/python{recipe.python}"
        self._argv = (str(loader), "--library-path", path, str(python))
        self._home = tree / "usr"

    def run(
        self,
        *argv: str,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
        own = {
            "PYTHONHOME": str(self._home),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONNOUSERSITE": "1",
        }
        return subprocess.run(
            (*self._argv, *argv),
            input=stdin,
            env={**inherited, **own, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )

    def install(self, lock: Path, target: Path, processor: str = "") -> None:
        """Install exactly the locked packages, as wheels for this interpreter and its libc.

        Args:
            lock: Names and hashes of all packages, for every platform.
            target: Folder of packages.
            processor: Another one than this machine's, by the kernel's name.
        """
        pip = importlib.util.find_spec("pip")
        if pip is None or pip.origin is None:
            raise BuildError("pip is missing: run this tool with the Python of the venv")
        with tempfile.TemporaryDirectory() as folder:
            # The folder shows pip and nothing else of the Python that runs this tool.
            (Path(folder) / "pip").symlink_to(Path(pip.origin).parent)
            done = self.run(
                *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("--no-compile", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
                *("--root-user-action", "ignore", "--target", str(target), "-r", str(lock)),
                *_platforms(processor),
                environment={"PYTHONPATH": folder},
                timeout_seconds=PIP_SECONDS,
            )
        if done.returncode != 0:
            raise BuildError(f"pip could not install {lock.name}: {_complaints(done.stderr)}")

    def compile(self, tree: Path, sourceless: Sequence[str] = ()) -> None:
        """Bytecode for all sources in the tree; instead of them below the `sourceless` folders."""
        sources = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*.py"))
        bare = [name for name in sources if name.startswith(tuple(sourceless))]
        kept = [name for name in sources if not name.startswith(tuple(sourceless))]
        shares = [
            (names[i::COMPILERS], names is bare) for names in (bare, kept) for i in range(COMPILERS)
        ]
        with ThreadPoolExecutor(max_workers=COMPILERS) as pool:
            list(pool.map(lambda share: self._compile(tree, *share), shares))

    def _compile(self, tree: Path, names: Sequence[str], bare: bool) -> None:
        if not names:
            return
        flags = ("--sourceless",) if bare else ()
        done = self.run(
            *(str(self._precompile), str(tree), *flags),
            stdin="\n".join(names),
            timeout_seconds=COMPILE_SECONDS,
        )
        if done.returncode != 0:
            raise BuildError(f"the image's Python: {done.stderr.strip()[-2000:]}")


def _platforms(processor: str) -> Iterator[str]:
    """Pip takes each name as it is: older ones that a wheel may have are not derived from one."""
    if processor:
        yield f"--platform=manylinux2014_{processor}"
        for minor in range(OLDEST_LIBC, NEWEST_LIBC + 1):
            yield f"--platform=manylinux_2_{minor}_{processor}"


def _complaints(stderr: str) -> str:
    """What pip calls an error; its warnings tell of each attempt."""
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return " ".join(errors[:3]) or stderr.strip()[-2000:]


def install_dependencies(
    recipe: Recipe, python: ImagePython, lock: Path, processor: str, tree: Path
) -> tuple[str, ...]:
    """Fill the tree with the locked packages, pruned and compiled."""
    site = tree / recipe.site_packages
    python.install(lock, site, processor)
    remove_matching(site, recipe.dependencies_prune, anywhere=True)
    prefix = recipe.site_packages
    python.compile(tree, tuple(f"{prefix}/{name}/" for name in recipe.sourceless))
    return tuple(sorted(_installed(site)))


def _installed(site: Path) -> list[str]:
    named = (re.fullmatch(r"(.+)-([^-]+)\.dist-info", path.name) for path in site.iterdir())
    return [f"{found.group(1)} {found.group(2)}" for found in named if found]


def component_files(checkout: Path, components: Components) -> tuple[str, ...]:
    """Our files, relative to the checkout: what a wheel would hold."""
    return tuple(
        sorted(
            path.relative_to(checkout).as_posix()
            for package in components.packages
            for path in (checkout / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
        )
    )


def install_components(
    recipe: Recipe, components: Components, python: ImagePython, checkout: Path, tree: Path
) -> tuple[str, ...]:
    """Fill the tree with our packages, compiled, with their metadata and commands."""
    site = tree / recipe.site_packages
    for name in component_files(checkout, components):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkout / name, site / name)
    python.compile(tree)
    _write_metadata(site, components)
    _write_scripts(recipe, components, site, tree / "usr/bin")
    return (f"{components.name} {components.version}",)


def _write_metadata(site: Path, components: Components) -> None:
    folder = site / f"{components.name}-{components.version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {components.name}\nVersion: {components.version}\n"
    )
    scripts = (f"{name} = {target}\n" for name, target in sorted(components.scripts.items()))
    (folder / "entry_points.txt").write_text("[console_scripts]\n" + "".join(scripts))


def _write_scripts(recipe: Recipe, components: Components, site: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, target in sorted(components.scripts.items()):
        module, function = target.split(":")
        if not (site / f"{module.replace('.', '/')}.py").is_file():
            continue  # A command whose component is not written yet.
        script = folder / name
        script.write_text(SCRIPT.format(python=recipe.python, module=module, function=function))
        script.chmod(0o755)
