"""Models: what is wrong with an object, under the path that Kubernetes gives the field."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field, field_validator

from kube.models import LabelSelector, Model, flaw, flaws


class Lens(Model):
    """A part of a camera."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("focal_length", "zoom")
    focal_length: int | None = None
    zoom: str | None = None


class Camera(Model):
    """An object with a field of each shape."""

    lenses: list[Lens] | None = None
    labels: dict[Annotated[str, Field(pattern="^[a-z]+$")], Annotated[str, Field(max_length=3)]] = (
        Field({})
    )
    best_lens: Lens | None = None
    selectors: dict[str, LabelSelector] | None = None
    words: list[str] | None = None

    @field_validator("words")
    @classmethod
    def _second_is_short(cls, words: list[str] | None) -> list[str] | None:
        if words and len(words[1]) > 3:
            raise flaw("It is long.", "[1]")
        return words


def paths(body: Any) -> list[str]:
    return [path for path, _ in flaws(Camera, body)]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"lenses": [{"zoom": "x"}, {"focalLength": "long"}]}, "lenses[1].focalLength"),
        ({"lenses": [{}]}, "lenses[0]"),
        ({"lenses": [{"zoom": "x", "focalLength": 1}]}, "lenses[0]"),
        ({"lenses": {}}, "lenses"),
        ({"bestLens": {"focalLength": True}}, "bestLens.focalLength"),
        ({"bestLens": {"focalLength": 1.0}}, "bestLens.focalLength"),
        ({"labels": {"a": "long"}}, "labels[a]"),
        ({"labels": {"A": "b"}}, "labels[A]"),
        ({"labels": {"a": None}}, "labels[a]"),
        (
            {"selectors": {"x": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            "selectors[x].matchExpressions[0].values",
        ),
        ({"selectors": {"x": {"matchLabels": {"a": 1}}}}, "selectors[x].matchLabels[a]"),
        ({"words": ["a", "word"]}, "words[1]"),
        ([], ""),
    ],
)
def test_flaw_names_its_field(body: Any, path: str) -> None:
    assert paths(body) == [path]


def test_all_flaws_are_found_at_once() -> None:
    body = {"lenses": [{"focalLength": "a"}], "labels": {"a": 1, "b": 2}}

    assert paths(body) == ["lenses[0].focalLength", "labels[a]", "labels[b]"]


def test_null_is_as_good_as_nothing_and_unknown_fields_are_somebody_elses() -> None:
    assert paths({"lenses": None, "bestLens": None, "flash": 7}) == []


def test_no_value_is_quoted() -> None:
    found = list(flaws(Camera, {"labels": {"a": "secret"}, "bestLens": {"zoom": 12345}}))

    assert len(found) == 2
    assert not any("secret" in sentence or "12345" in sentence for _, sentence in found)


def test_sentences_are_the_validators_own() -> None:
    assert list(flaws(Camera, {"words": ["a", "word"], "bestLens": {}})) == [
        ("bestLens", "Exactly one of focalLength, zoom must be given."),
        ("words[1]", "It is long."),
    ]
