"""What is pinned of Debian, and how what was fetched is compared with it."""

from __future__ import annotations

import pytest

from local_cluster.errors import BuildError
from local_cluster.image_pins import Package, Pins, written
from local_cluster.image_recipe import CHECKOUT
from local_cluster.image_release import ARCHITECTURES

LIBC = Package("amd64", "libc6", "2.36-9", "a" * 64)
SSL = Package("amd64", "libssl3", "3.0.17-1", "b" * 64)
OTHERS = Package("arm64", "libc6", "2.36-9", "c" * 64)


def test_what_is_written_is_read_again() -> None:
    pins = Pins.parse(written([SSL, OTHERS, LIBC]))

    assert pins.of("amd64") == (LIBC, SSL)
    assert pins.problems("amd64", [SSL, LIBC]) == ()


@pytest.mark.parametrize(
    ("fetched", "problem"),
    [
        ([LIBC], "libssl3 is pinned and was not fetched"),
        ([LIBC, SSL, Package("amd64", "bash", "5", "d" * 64)], "bash is not pinned"),
        (
            [LIBC, Package("amd64", "libssl3", "3.0.18-1", "d" * 64)],
            "libssl3 3.0.18-1 is not the pinned 3.0.17-1",
        ),
        (
            [LIBC, Package("amd64", "libssl3", "3.0.17-1", "d" * 64)],
            "libssl3 3.0.17-1 has another digest than the pinned one",
        ),
    ],
)
def test_each_difference_is_a_sentence(fetched: list[Package], problem: str) -> None:
    assert Pins.parse(written([LIBC, SSL, OTHERS])).problems("amd64", fetched) == (problem,)


def test_a_line_that_is_none_is_refused() -> None:
    with pytest.raises(BuildError, match="'amd64 libc6' is not architecture, package, version"):
        Pins.parse("# head\namd64 libc6\n")


def test_each_platform_is_pinned_by_the_same_packages() -> None:
    pins = Pins.parse((CHECKOUT / "deploy/image/debian.lock").read_text())
    names = [{package.name for package in pins.of(name)} for name in ARCHITECTURES]

    assert names[0] == names[1] > {"libc6", "python3.13-minimal"}
