"""What `moorage-driver permissions` prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.configurations.permissions import Account, InputError, configurations_in, permissions
from driver.handlers.properties.discovery_properties import (
    KeptObject,
    Reading,
    discovery_properties,
    forbidden,
    kept_objects,
    problems,
)
from driver.running.permissions_main import run_permissions
from driver.running.settings import PermissionsSettings, parse_settings
from tests.driver.builders import a_configuration, a_configuration_object

NODE = Account("moorage-system", "driver-node")


def naming(*references: tuple[str, str, str | None]) -> dict[str, Any]:
    """A Configuration that names these objects, by kind, name and namespace."""
    body = a_configuration_object("camera")
    fields = {"Secret": "secretKeyRef", "ConfigMap": "configMapKeyRef"}
    body["spec"]["discoveryHandler"]["discoveryProperties"] = [
        {
            "name": f"p{index}",
            "valueFrom": {
                fields[kind]: {"name": name, "key": "k"}
                | ({"namespace": namespace} if namespace else {})
            },
        }
        for index, (kind, name, namespace) in enumerate(references)
    ]
    return body


def test_exactly_what_is_named_is_allowed_in_each_namespace() -> None:
    body = naming(
        ("Secret", "b", None),
        ("Secret", "a", None),
        ("Secret", "a", None),
        ("ConfigMap", "m", None),
        ("Secret", "a", "video"),
    )

    role, binding, *video = permissions(body, NODE)

    assert role["metadata"]["name"] == "moorage.dev:properties:camera"
    assert [(r["resources"], r["resourceNames"]) for r in role["rules"]] == [
        (["configmaps"], ["m"]),
        (["secrets"], ["a", "b"]),
    ]
    assert all(rule["verbs"] == ["get", "list", "watch"] for rule in role["rules"])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "driver-node", "namespace": "moorage-system"}
    ]
    assert [(b["kind"], b["metadata"]["namespace"]) for b in (role, binding, *video)] == [
        ("Role", "default"),
        ("RoleBinding", "default"),
        ("Role", "video"),
        ("RoleBinding", "video"),
    ]
    assert video[0]["rules"][0]["resourceNames"] == ["a"]


def test_values_need_no_permission() -> None:
    body = a_configuration_object()
    body["spec"]["discoveryHandler"]["discoveryProperties"] = [{"name": "a", "value": "b"}]

    assert permissions(body, NODE) == []
    assert permissions(a_configuration_object(), NODE) == []


@pytest.mark.parametrize(
    "body",
    [{}, {"metadata": {"name": 7}}, {"metadata": []}, naming(("Secret", "NO", None))],
)
def test_input_without_sense_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        permissions(body, NODE)


def test_configurations_are_found_among_other_objects() -> None:
    one = a_configuration_object("one")
    lists = {"apiVersion": "v1", "kind": "List", "items": [one, {"kind": "Secret"}, None]}

    assert list(configurations_in([{"kind": "Configuration"}, "text", lists, one])) == [one, one]


def settings_of(*argv: str) -> PermissionsSettings:
    settings = parse_settings(["permissions", *argv], {"POD_NAMESPACE": "mine"})
    assert isinstance(settings, PermissionsSettings)
    return settings


async def test_files_are_read_and_yaml_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump_all([naming(("Secret", "a", None)), {"kind": "Pod"}]))

    await run_permissions(settings_of("-f", str(file), "--service-account=d"))

    role, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert role["rules"][0]["resourceNames"] == ["a"]
    assert binding["subjects"][0] == {"kind": "ServiceAccount", "name": "d", "namespace": "mine"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file or directory"),
        (b"a: [", "this is not YAML"),
        (b"\xff\xfe\xff", "this is not YAML"),
        (b"[" * 5000, "this is not YAML"),
        (b"", "it has no Configuration of akri.sh"),
        (b"kind: Configuration\napiVersion: akri.sh/v0\n", "metadata: Field required"),
    ],
)
async def test_files_without_sense_are_refused(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "c.yaml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(InputError, match=sentence):
        await run_permissions(settings_of("-f", str(file)))


def test_by_default_the_cluster_is_asked_for_the_installed_driver() -> None:
    settings = parse_settings(["permissions"], {"KUBECONFIG": "/k"})

    assert isinstance(settings, PermissionsSettings)
    assert (settings.filename, settings.kubeconfig, settings.account) == (None, Path("/k"), NODE)


def test_drivers_in_a_namespace_of_their_own_are_allowed_to_read() -> None:
    """The pod that it is asked in is in the release's."""
    environ = {"POD_NAMESPACE": "moorage-system", "DRIVER_NAMESPACE": "moorage-driver"}
    settings = parse_settings(["permissions"], environ)

    assert isinstance(settings, PermissionsSettings)
    assert settings.account == Account("moorage-driver", "driver-node")


def test_the_page_about_credentials_shows_what_is_printed_and_told() -> None:
    page = (Path(__file__).parents[3] / "docs" / "discovery-properties.md").read_text()
    configuration, role = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    told = {
        "camera": forbidden(KeptObject("Secret", "default", "cameras")),
        "gone": missing_of(configuration),
    }

    assert permissions(configuration, NODE)[0] == role
    assert [what for what, sentence in told.items() if sentence not in page] == []


def missing_of(body: dict[str, Any]) -> str:
    """What is told of the Secret that this Configuration names, if there is none."""
    given = body["spec"]["discoveryHandler"]["discoveryProperties"]
    asked = a_configuration(discovery_properties=discovery_properties(given))
    (sentence,) = problems(asked, dict.fromkeys(kept_objects([asked]), Reading(is_read=True)))
    return sentence
