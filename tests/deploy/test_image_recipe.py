"""The declaration of the image, and what of the checkout goes into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster.errors import BuildError
from local_cluster.image_build import read_sources
from local_cluster.image_python import component_files
from local_cluster.image_recipe import CHECKOUT, Recipe, content_key, files_key


def test_the_checkout_s_own_declaration_is_read() -> None:
    sources = read_sources(CHECKOUT)

    assert f"python{sources.recipe.python}-minimal" in sources.recipe.debian_packages
    assert sources.recipe.site_packages == "usr/local/lib/python3.13/dist-packages"
    assert sources.components.name == "moorage"
    assert sources.components.scripts["moorage-driver"] == "driver.__main__:main"


def test_our_files_are_those_of_the_packages_without_bytecode() -> None:
    names = component_files(CHECKOUT, read_sources(CHECKOUT).components)

    assert "driver/api.py" in names
    assert "kube/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


def test_a_declaration_that_lacks_something_says_what() -> None:
    with pytest.raises(BuildError, match=r"image\.toml lacks 'debian'"):
        Recipe.parse('python = "3.11"')


def test_a_declaration_that_is_not_toml_says_where() -> None:
    with pytest.raises(BuildError, match=r"is not TOML: .*end of document"):
        Recipe.parse("python = ")


def test_keys_tell_parts_apart() -> None:
    assert content_key("ab", "c") != content_key("a", "bc")
    assert content_key("a") != content_key("a", "")


def test_a_key_of_files_changes_with_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")

    keys = {files_key(tmp_path, ["a"]), files_key(tmp_path, ["b"])}
    (tmp_path / "a").write_text("2")

    assert len(keys | {files_key(tmp_path, ["a"])}) == 3
