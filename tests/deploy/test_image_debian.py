"""Debian packages of the image: which ones are needed."""

from __future__ import annotations

import pytest

from local_cluster.errors import BuildError
from local_cluster.image_debian import closure, parse_graph

LISTING = """\
python3.11-minimal
  PreDepends: libc6
  Depends: libpython3.11-minimal
 |Depends: media-types
  Depends: perl:any
libc6
libpython3.11-minimal
  Depends: <debconf-2.0>
    cdebconf
    debconf
media-types
perl
"""


def test_a_listing_becomes_a_graph() -> None:
    assert parse_graph(LISTING) == {
        "python3.11-minimal": ("libc6", "libpython3.11-minimal", "media-types", "perl"),
        "libc6": (),
        "libpython3.11-minimal": ("<debconf-2.0>",),
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
        closure(parse_graph(LISTING), ["libpython3.11-minimal"], frozenset())
