"""Debian packages of the image: which ones are needed."""

from __future__ import annotations

import pytest

from local_cluster.errors import BuildError
from local_cluster.image_debian import closure, parse_graph
from local_cluster.image_sources import codename, sources

LISTING = """\
python3.13-minimal
  PreDepends: libc6
  Depends: libpython3.13-minimal
 |Depends: media-types
  Depends: perl:any
libc6
libpython3.13-minimal
  Depends: <debconf-2.0>
    cdebconf
    debconf
media-types
perl
"""


def test_a_listing_becomes_a_graph() -> None:
    assert parse_graph(LISTING) == {
        "python3.13-minimal": ("libc6", "libpython3.13-minimal", "media-types", "perl"),
        "libc6": (),
        "libpython3.13-minimal": ("<debconf-2.0>",),
        "media-types": (),
        "perl": (),
    }


def test_closure_is_sorted_and_follows_dependencies() -> None:
    graph = {"b": ("c",), "a": ("c", "b"), "c": ("a",)}

    assert closure(graph, ["a"], frozenset()) == ("a", "b", "c")


def test_what_is_left_out_brings_nothing_along() -> None:
    graph = {"a": ("b",), "b": ("c",), "c": ()}

    assert closure(graph, ["a"], frozenset({"b"})) == ("a",)


def test_a_package_that_apt_does_not_know_is_named() -> None:
    with pytest.raises(BuildError, match=r"<debconf-2\.0>"):
        closure(parse_graph(LISTING), ["libpython3.13-minimal"], frozenset())


TARGETS = """\
http://mirror.example.com/debian/|bookworm|main
http://mirror.example.com/debian/|bookworm|contrib
http://mirror.example.com/debian/|bookworm-updates|main
http://mirror.example.com/debian-security/|bookworm-security|main
http://mirror.example.com/debian/|bookworm|main
https://other.example.com/apt/|cloud-bookworm|main
"""


def test_the_sources_of_another_release_are_the_machine_s_with_its_name() -> None:
    """Those of others than Debian have no such release."""
    assert sources(TARGETS, "bookworm", "trixie", "[signed-by=/keys] ").splitlines() == [
        "deb [signed-by=/keys] http://mirror.example.com/debian/ trixie main",
        "deb [signed-by=/keys] http://mirror.example.com/debian/ trixie-updates main",
        "deb [signed-by=/keys] http://mirror.example.com/debian-security/ trixie-security main",
    ]


@pytest.mark.parametrize("own", ["noble", ""])
def test_a_machine_without_a_source_of_debian_is_told_so(own: str) -> None:
    with pytest.raises(BuildError, match="trixie, and this machine's apt has no source of Debian"):
        sources(TARGETS, own, "trixie")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID=debian\nVERSION_CODENAME=bookworm\n", "bookworm"),
        ('VERSION_CODENAME="trixie"\n', "trixie"),
        ("ID=arch\n", ""),
    ],
)
def test_the_codename_of_a_release_is_read(text: str, expected: str) -> None:
    assert codename(text) == expected
