"""Fetches Debian packages with apt and unpacks them. Nothing is installed on this machine."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_cluster.errors import BuildError
from local_cluster.image_layers import remove_matching
from local_cluster.image_pins import Package, Pins
from local_cluster.image_recipe import Recipe
from local_cluster.image_sources import TARGET, options, own_codename, sources
from local_cluster.linux_commands import attempt, run
from local_cluster.progress import say

TOOLS = ("apt-cache", "apt-get", "dpkg", "dpkg-deb")
FETCH_SECONDS = 600
ONLY_DEPENDS = tuple(
    f"--no-{kind}"
    for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
)
# Where image scanners look for the packages of an image that has no dpkg.
PACKAGE_RECORDS = "var/lib/dpkg/status.d"
CERTIFICATES = "usr/share/ca-certificates"
CERTIFICATE_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
# Where libssl looks on its own; Debian's openssl package links the folder.
OPENSSL_BUNDLE = "usr/lib/ssl/cert.pem"

# No package counts as installed: what is on this machine must not change the image.
OPTIONS = (
    *("-qq", "-o", "Dir::State::status=/dev/null"),
    *("-o", "APT::Cache::ShowOnlyFirstOr=true"),
    *("-o", "APT::Sandbox::User=root"),
    *("-o", "Debug::NoLocking=true"),
)

EMULATOR = "qemu-user"
PROCESSORS: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's name of an architecture to that of the kernel, of wheels and of the emulator."""

MERGED = ("bin", "lib", "lib64", "sbin")
"""Links from the root into `usr`, which Debian's base-files has since its packages lack them."""

Graph = Mapping[str, tuple[str, ...]]


def architecture() -> str:
    """Debian's name of this machine's architecture; for the common ones it is the OCI name."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise BuildError(
            f"the image is made of Debian packages, and this machine lacks {', '.join(missing)}"
        )
    return run("dpkg", "--print-architecture").strip()


class Apt:
    """The package lists that apt reads: this machine's own, or fresh ones in the cache.

    Attributes:
        architecture: Debian's name of the one whose packages are meant.
    """

    def __init__(self, state: Path, of: str | None = None, suite: str = "") -> None:
        """Create.

        Args:
            state: Folder of the lists.
            of: The architecture; None for this machine's.
            suite: The codename of Debian's release; "" for this machine's.
        """
        native, own_suite = architecture(), own_codename()
        self.architecture = of or native
        self._suite = "" if suite == own_suite else suite
        self._is_native = self.architecture == native
        self._has_lists = self._is_native and not self._suite
        self._state = state / self._suite / self.architecture
        self._options: tuple[str, ...] = OPTIONS

    def resolve(self, recipe: Recipe) -> tuple[str, ...]:
        """The roots and what they need, by name."""
        self._ensure_lists()
        try:
            return closure(self._graph(recipe), recipe.debian_packages, recipe.debian_without)
        except BuildError:
            self.update()
        try:
            return closure(self._graph(recipe), recipe.debian_packages, recipe.debian_without)
        except BuildError as error:
            raise BuildError(
                f"the image is made of packages of Debian's {recipe.debian_suite}, and apt does not"
                f" offer all of them: {error}"
            ) from error

    def download(self, packages: Sequence[str], folder: Path) -> tuple[Path, ...]:
        self._ensure_lists()
        try:
            self._download(packages, folder)
        except BuildError as first:
            # Lists that are older than the archive name versions that are gone.
            self.update()
            try:
                self._download(packages, folder)
            except BuildError as error:
                raise BuildError(f"apt could not fetch Debian packages: {first}") from error
        return tuple(sorted(folder.glob("*.deb")))

    def _ensure_lists(self) -> None:
        """The machine's own lists are of its own release and architecture."""
        if not self._has_lists:
            self.update()

    def update(self) -> None:
        """Fetch package lists into the cache. The machine's own stay as they are."""
        say("image: fetching Debian's package lists")
        lists, cache = self._state / "lists", self._state / "cache"
        for folder in (lists / "partial", cache / "archives/partial"):
            folder.mkdir(parents=True, exist_ok=True)
        places = (f"Dir::State::lists={lists}", f"Dir::Cache={cache}", *self._sources())
        # Not the machine's own architecture beside it: packages of both have one name.
        meant = (f"APT::Architecture={self.architecture}",)
        chosen = () if self._is_native else (*meant, f"APT::Architectures::={self.architecture}")
        options = (word for option in (*places, *chosen) for word in ("-o", option))
        self._options = (*OPTIONS, *options)
        done = attempt("apt-get", *self._options, "update", timeout_seconds=FETCH_SECONDS)
        # apt calls an update well done if it fetched nothing.
        if not any(lists.glob("*_Packages*")):
            raise BuildError(f"apt could not fetch its package lists: {_complaints(done.stderr)}")
        self._has_lists = True

    def _sources(self) -> tuple[str, ...]:
        """Options for the sources of the suite; none for this machine's own."""
        if not self._suite:
            return ()
        listing = _apt("apt-get", "indextargets", f"--format={TARGET}", "Created-By: Packages")
        own = own_codename()
        file = self._state / "sources.list"
        file.write_text(sources(listing, own, self._suite, options()))
        return f"Dir::Etc::sourcelist={file}", "Dir::Etc::sourceparts=-"

    def emulator(self) -> tuple[str, ...]:
        """What programs of this architecture are run by; empty if by this machine itself."""
        if self._is_native:
            return ()
        if (processor := PROCESSORS.get(self.architecture)) is None:
            raise BuildError(f"no image is built for {self.architecture} on this machine")
        program = self._state / "emulator" / f"usr/bin/qemu-{processor}"
        if not program.is_file():
            with tempfile.TemporaryDirectory() as folder:
                say(f"image: fetching {EMULATOR}, for the {self.architecture} image")
                native = Apt(self._state / "native", suite=self._suite)
                for archive in native.download((EMULATOR,), Path(folder)):
                    run("dpkg-deb", "-x", str(archive), str(self._state / "emulator"))
        return (str(program),)

    def _graph(self, recipe: Recipe) -> Graph:
        depends = ("depends", "--recurse", *ONLY_DEPENDS)
        return parse_graph(_apt("apt-cache", *self._options, *depends, *recipe.debian_packages))

    def _download(self, packages: Sequence[str], folder: Path) -> None:
        _apt("env", f"--chdir={folder}", "apt-get", *self._options, "download", *packages)


def _apt(*argv: str) -> str:
    done = attempt(*argv, timeout_seconds=FETCH_SECONDS)
    if done.returncode != 0:
        raise BuildError(_complaints(done.stderr))
    return done.stdout


def _complaints(stderr: str) -> str:
    """The first ones, which are those with the cause."""
    found = [line for line in stderr.splitlines() if line.startswith(("E: ", "W: "))]
    return " ".join(found[:2]) or stderr.strip()


def parse_graph(text: str) -> Graph:
    """Read `apt-cache depends --recurse`: a package a line, what it depends on indented."""
    graph: dict[str, list[str]] = {}
    package = ""
    for line in text.splitlines():
        if not line.startswith((" ", "|")):
            package = line.strip()
            graph.setdefault(package, [])
        elif found := re.match(r"[ |]+(?:Pre)?Depends: (\S+)", line):
            graph[package].append(found.group(1).removesuffix(":any"))
    return {name: tuple(depends) for name, depends in graph.items()}


def closure(graph: Graph, roots: Iterable[str], without: Collection[str]) -> tuple[str, ...]:
    """All packages that the roots need; what is left out brings nothing along."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name in without:
            continue
        if name not in graph:
            raise BuildError(f"no Debian package {name}: add it to `without` or name a provider")
        found.add(name)
        waiting += graph[name]
    return tuple(sorted(found))


@dataclass(frozen=True)
class Base:
    """What the base is made of: the declaration, Debian's archive, and what is pinned of it."""

    recipe: Recipe
    apt: Apt
    pins: Pins
    files: Path

    def unpack(self, tree: Path) -> tuple[str, ...]:
        """Fill the tree with the packages, pruned, and with our own files in `etc`.

        Returns:
            Name, version and digest of each package.
        """
        packages = self.apt.resolve(self.recipe)
        say(f"image: fetching {len(packages)} Debian packages for {self.apt.architecture}")
        with tempfile.TemporaryDirectory() as folder:
            archives = self.apt.download(packages, Path(folder))
            if len(archives) != len(packages):
                raise BuildError(f"apt fetched {len(archives)} of {len(packages)} packages")
            _link_merged(tree)
            for archive in archives:
                run("dpkg-deb", "-x", str(archive), str(tree))
            records = {_package(self.apt.architecture, one): _fields(one) for one in archives}
        for problem in self.pins.problems(self.apt.architecture, records):
            say(f"image: {problem}")
        _join_certificates(tree)
        remove_matching(tree, self.recipe.debian_prune)
        shutil.copytree(self.files, tree, dirs_exist_ok=True)
        _make_folders(tree)
        _index_libraries(tree, self.apt)
        _write_records(tree / PACKAGE_RECORDS, records)
        return tuple(f"{p.name} {p.version} sha256:{p.sha256}" for p in sorted(records))


def _link_merged(tree: Path) -> None:
    for name in MERGED:
        (tree / "usr" / name).mkdir(parents=True, exist_ok=True)
        (tree / name).symlink_to(f"usr/{name}")


def _join_certificates(tree: Path) -> None:
    found = sorted((tree / CERTIFICATES).rglob("*.crt"))
    bundle = tree / CERTIFICATE_BUNDLE
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(path.read_text() for path in found))
    link = tree / OPENSSL_BUNDLE
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"/{CERTIFICATE_BUNDLE}")


def _make_folders(tree: Path) -> None:
    for name in ("dev", "proc", "root", "run", "sys", "tmp", "var/tmp"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (tree / name).chmod(0o1777)
    (tree / "var/run").symlink_to("/run")


def _index_libraries(tree: Path, apt: Apt) -> None:
    """`ldconfig -p`, which ctypes asks for libudev, only reads this index."""
    ldconfig = str(tree / "sbin/ldconfig")
    run(*apt.emulator(), ldconfig, "-X", "-r", str(tree))
    shutil.rmtree(tree / "var/cache", ignore_errors=True)


def _fields(archive: Path) -> str:
    return run("dpkg-deb", "-f", str(archive))


def _package(architecture: str, archive: Path) -> Package:
    fields = dict(re.findall(r"^(Package|Version): (.+)$", _fields(archive), re.MULTILINE))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Package(architecture, fields["Package"], fields["Version"], digest)


def _write_records(folder: Path, records: Mapping[Package, str]) -> None:
    folder.mkdir(parents=True)
    for package, fields in records.items():
        (folder / package.name).write_text(fields)
