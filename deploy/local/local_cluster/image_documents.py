"""What is said of an image beside it: what it is made of (SPDX), and how it was made (SLSA).

Both are functions of the image: two builds of it give the same bytes. They are not signed; that is
for who publishes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from local_cluster.image_archive import EPOCH
from local_cluster.image_layers import Layer

HOME = "https://moorage.dev"
KINDS = {"base": "deb/debian", "dependencies": "pypi", "components": "pypi"}

Json = dict[str, Any]


def bill_of_materials(tag: str, digest: str, architecture: str, layers: Sequence[Layer]) -> Json:
    """An SPDX 2.3 document of one platform's image: each package by its package URL.

    Args:
        tag: The image's name.
        digest: Of the platform's manifest.
        architecture: Debian's name.
        layers: What it is made of.
    """
    parts = [part for layer in layers for part in _packages(layer, architecture)]
    image = {
        "SPDXID": "SPDXRef-image",
        "name": tag,
        "versionInfo": digest,
        "primaryPackagePurpose": "CONTAINER",
        **_unsaid(),
        "checksums": [_checksum(digest)],
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{tag} {architecture}",
        "documentNamespace": f"{HOME}/spdx/{digest.removeprefix('sha256:')}",
        # When it was written is not said, since that would make each build another one.
        "creationInfo": {"created": EPOCH, "creators": ["Tool: moorage-image-build"]},
        "packages": [image, *parts],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image"),
            *(_relation("SPDXRef-image", "CONTAINS", part["SPDXID"]) for part in parts),
        ],
    }


def _packages(layer: Layer, architecture: str) -> Iterator[Json]:
    kind = KINDS[layer.name.split("-")[0]]
    for number, line in enumerate(layer.contents):
        name, version, *digest = line.split()
        where = f"?arch={architecture}&distro=debian-12" if kind == "deb/debian" else ""
        url = f"pkg:{kind}/{quote(name.lower())}@{quote(version)}{where}"
        yield {
            "SPDXID": f"SPDXRef-{layer.name}-{number}",
            "name": name,
            "versionInfo": version,
            **_unsaid(),
            **({"checksums": [_checksum(digest[0])]} if digest else {}),
            "externalRefs": [
                {
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": url,
                }
            ],
        }


def _unsaid() -> Json:
    return {"downloadLocation": "NOASSERTION", "filesAnalyzed": False}


def _checksum(digest: str) -> Json:
    return {"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}


def _relation(one: str, how: str, other: str) -> Json:
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def provenance(
    tag: str,
    digest: str,
    commit: str,
    inputs: Mapping[str, str],
    images: Mapping[str, Sequence[Layer]],
) -> Json:
    """An in-toto statement with SLSA's predicate.

    Args:
        tag: The image's name.
        digest: Of the index of all platforms.
        commit: Of the sources; empty if they are of none.
        inputs: Files that pin what goes in, with their SHA-256.
        images: The layers of each platform.
    """
    pinned = [{"uri": name, "digest": {"sha256": value}} for name, value in sorted(inputs.items())]
    source = [{"uri": "git+.", "digest": {"gitCommit": commit}}] if commit else []
    packages = [
        {"uri": package["externalRefs"][0]["referenceLocator"], "digest": _digest(package)}
        for architecture, layers in sorted(images.items())
        for package in _packages(layers[0], architecture)
    ]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": tag, "digest": {"sha256": digest.removeprefix("sha256:")}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{HOME}/image-build/v1",
                "externalParameters": {"platforms": [f"linux/{name}" for name in sorted(images)]},
                "resolvedDependencies": [*source, *pinned, *packages],
            },
            "runDetails": {"builder": {"id": f"{HOME}/image-build"}},
        },
    }


def _digest(package: Json) -> Json:
    return {check["algorithm"].lower(): check["checksumValue"] for check in package["checksums"]}
