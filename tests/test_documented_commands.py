"""What pages say to type: each block is run by a story, or listed with the reason why not.

The tutorial, the how-to pages, README's quick start, INSTALL.md and the image's page are typed
word for word. What other pages show is done by the stories that are named here, in the surroundings
that it needs; a page's own words would need that page's disks, cameras and nodes.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from local_cluster.api import BUSYBOX_OF_PAGES
from tests import reference

ROOT = Path(__file__).resolve().parent.parent
E2E = "tests/e2e/"
TYPED = f"{E2E}test_documentation.py::test_whoever_types_what_a_page_says_gets_what_it_says"
WORD_FOR_WORD: Mapping[str, str] = {
    "docs/tutorial.md": TYPED,
    "docs/how-to/claim-a-disk.md": f"{E2E}test_documentation.py::"
    "test_a_disk_is_claimed_as_its_page_says",
    "docs/how-to/": TYPED,
    "INSTALL.md": f"{E2E}test_helm.py::"
    "test_a_release_lives_as_documented_and_leaves_nothing_that_blocks",
    "deploy/image/README.md": f"{E2E}test_air_gapped.py::"
    "test_an_image_that_was_built_is_pushed_and_imported_as_pages_say",
}
"""Pages whose `sh` blocks are typed, and by which story."""

E2E_OWN = f"{E2E}test_own_control_plane.py::test_pods_that_name_no_scheduler_are_charged"
REFUSED = f"{E2E}driver/test_claims.py::test_a_broken_configuration_says_where_and_the_others_go_on"
NODE_REFUSES = (
    f"{E2E}driver/test_device_configs.py::"
    "test_what_no_webhook_refused_the_node_refuses_and_says_why"
)
ROTATED = f"{E2E}driver/test_properties.py::test_a_rotated_password_needs_no_restart"
PERMITTED = (
    f"{E2E}test_discovery_properties.py::"
    "test_a_secret_is_read_as_soon_as_a_role_names_it_and_whenever_it_changes"
)
WORDS_GO = (
    f"{E2E}driver/test_going_away.py::test_devices_in_words_go_and_come_back_on_one_node_and_on_all"
)
MOVED = f"{E2E}driver/test_moved_devices.py::test_no_pod_reads_the_disk_that_is_where_its_own_was"
TO_DRA = f"{E2E}legacy/test_paths.py::test_no_slot_is_granted_twice_on_the_way_to_dra_and_back"
SEEN_BY_ALL = (
    f"{E2E}driver/test_shared_instances.py::"
    "test_nodes_that_see_one_device_hold_one_instance_and_each_its_own_otherwise"
)
LOST_NODE = (
    f"{E2E}driver/test_shared_instances.py::test_an_instance_goes_when_no_node_sees_it_or_uses_it"
)
SHARERS = f"{E2E}driver/test_shared_claims.py::test_slots_of_one_device_are_used_on_several_nodes"
DASHBOARD = f"{E2E}sharing/test_dashboard.py::test_who_shares_who_pays_and_what_waits_is_seen"
LINES = f"{E2E}sharing/test_waiting.py::test_no_more_go_than_fit_and_the_others_ask_for_nothing"
OPTED_IN = (
    f"{E2E}sharing/test_opt_in.py::"
    "test_where_there_is_a_gate_they_wait_at_it_and_go_when_there_is_room"
)
NEWCOMER = (
    f"{E2E}test_newcomer.py::"
    "test_five_commands_of_the_readme_lead_from_a_checkout_to_a_claim_that_is_charged"
)
OTHER_LABEL = "tests/deploy/test_label_key.py::test_the_components_read_the_other_key"

ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("README.md", "make install"): NEWCOMER,
    ("README.md", "make demo"): "The demo is a story itself; `make e2e-oldest` runs it on 1.34.",
    ("docs/how-to/claim-a-disk.md", "kubectl get akric broken"): REFUSED,
    ("deploy/local/README.md", "make install"): NEWCOMER,
    ("deploy/webhook/README.md", "kubectl -n moorage-system rollout status"): f"{E2E}webhook/"
    "test_installation.py::test_the_api_server_takes_the_manifests_as_they_are",
    ("deploy/webhook/README.md", "kubectl label namespace lab"): OPTED_IN,
    ("docs/dashboard.md", "kubectl -n moorage-system port-forward"): DASHBOARD,
    ("docs/dashboard.md", "kubectl create token"): DASHBOARD,
    ("docs/device-config.md", "kubectl create -f claim.yaml"): "tests/webhook/rules/"
    "test_device_configs.py::",
    ("docs/device-config.md", "kubectl get events"): NODE_REFUSES,
    ("docs/discovery-properties.md", "kubectl get akric camera"): ROTATED,
    ("docs/discovery-properties.md", "kubectl exec -n moorage-system"): PERMITTED,
    ("docs/going-away.md", "kubectl get events"): MOVED,
    ("docs/going-away.md", "kubectl get resourceslices"): WORDS_GO,
    ("docs/handlers-debugecho.md", "echo OFFLINE"): WORDS_GO,
    ("docs/handlers-udev.md", "kubectl get akric camera"): REFUSED,
    ("docs/kai.md", "sed -i"): OTHER_LABEL,
    ("docs/kai.md", "kubectl delete -f deploy/policies"): "KAI is in no cluster of these tests.",
    ("docs/import.md", "kubectl moorage import"): "tests/scheduler_plugin/kubectl/test_importing.py"
    "::test_the_page_prints_what_the_command_prints",
    ("docs/import.md", "kubectl get"): "Neither KAI nor Kueue is in a cluster of these tests.",
    ("docs/kubectl.md", "kubectl moorage simulate"): f"{E2E}sharing/test_kubectl.py::"
    "test_what_is_simulated_is_what_happens_then",
    ("docs/metrics.md", "kubectl get --raw"): f"{E2E}driver/test_pods.py::"
    "test_pods_of_handlers_work_at_a_socket_and_over_the_network_and_figures_tell_it",
    ("docs/moving-to-dra.md", "kubectl get pods"): TO_DRA,
    ("docs/moving-to-dra.md", "kubectl get akrii camera-8120fe"): TO_DRA,
    ("docs/moving-to-dra.md", "kubectl get resourceclaims"): TO_DRA,
    ("docs/moving-to-dra.md", "kubectl get resourceslices"): TO_DRA,
    ("docs/own-control-plane.md", "install -d"): E2E_OWN,
    ("docs/own-control-plane.md", "moorage-scheduler-plugin print-config"): E2E_OWN,
    ("docs/own-control-plane.md", "kubectl -n kube-system get configmap"): E2E_OWN,
    ("docs/own-control-plane.md", "moorage-scheduler-plugin print-static-pod"): E2E_OWN,
    ("docs/own-control-plane.md", "moorage-scheduler-plugin check"): E2E_OWN,
    ("docs/owner-leaves.md", "kubectl annotate resourceclaim"): f"{E2E}sharing/test_leaving.py::"
    "test_a_claims_annotation_asks_in_vain_where_its_owner_denies_that_or_a_budget_does",
    ("docs/queues.md", "kubectl get queues"): f"{E2E}plugin/test_queue_status.py::",
    ("docs/quota.md", "kubectl get pod w"): f"{E2E}sharing/test_reclaim.py::"
    "test_a_queue_within_its_quota_gets_its_room_back_and_all_sides_are_told",
    ("docs/shared-devices.md", "kubectl get akrii"): SEEN_BY_ALL,
    ("docs/shared-devices.md", "kubectl get events"): LOST_NODE,
    ("docs/shared-devices.md", "kubectl get resourceslice"): SEEN_BY_ALL,
    ("docs/shared-devices.md", "kubectl get pods"): SHARERS,
    ("docs/shared-devices.md", "kubectl get deviceclasses"): SEEN_BY_ALL,
    ("docs/waiting.md", "kubectl label namespace"): OPTED_IN,
    ("docs/waiting.md", "kubectl get pods"): LINES,
    ("docs/waiting.md", "kubectl -n moorage-system port-forward"): LINES,
    ("docs/what-containers-find.md", "kubectl get resourceclaim my-camera"): f"{E2E}driver/"
    "test_told_devices.py::test_a_claim_says_what_was_prepared_until_it_is_deallocated",
    ("docs/what-containers-find.md", "kubectl wait resourceclaim my-camera"): f"{E2E}driver/"
    "test_told_devices.py::test_a_claim_says_whether_its_device_is_ready_and_since_when",
    ("docs/write-your-own-handler.md", "kubectl get akric folders"): f"{E2E}driver/"
    "test_handlers.py::test_a_handler_comes_late_goes_and_comes_back",
}
"""Page and beginning of a block's first command, and the story that does it, or why there is none.

What a test file as a whole is about ends with `::`.
"""

Block = tuple[str, str, tuple[str, ...]]
"""A page, the language of a block, and the commands in it."""

_BLOCK = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:curl|docker|echo|helm|kubeadm|kubectl|make|moorage-[a-z-]+|mv|sed) .+")
_OURS = re.compile(r"(?:kubectl moorage|moorage-(?:driver|scheduler-plugin|webhook)) [^|>#]+")


def blocks() -> Iterator[Block]:
    """All blocks of all pages that have commands."""
    listed = subprocess.check_output(("git", "ls-files", "*.md"), cwd=ROOT, text=True)
    for page in listed.split():
        for language, text in _BLOCK.findall((ROOT / page).read_text()):
            if found := tuple(_commands(language, text)):
                yield page, language, found


def _commands(language: str, text: str) -> Iterator[str]:
    """The lines of a script; of what a terminal shows, those behind a prompt, if any has one."""
    whole = text.replace("\\\n", " ")
    lines = [" ".join(line.split()) for line in whole.splitlines()]
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    if language == "sh":
        yield from filter(None, lines)
    elif not language:
        yield from prompted or [line for line in lines if _COMMAND.fullmatch(line)]


def is_typed(page: str, language: str) -> bool:
    return language == "sh" and any(page.startswith(name) for name in WORD_FOR_WORD)


BLOCKS = tuple(blocks())
LEFT = [block for block in BLOCKS if not is_typed(*block[:2])]


def of_block(block: Block) -> list[tuple[str, str]]:
    page, _, commands = block
    return [key for key in ELSEWHERE if key[0] == page and commands[0].startswith(key[1])]


def test_pages_have_commands_and_those_of_the_tutorial_are_typed() -> None:
    typed = {page for page, language, _ in BLOCKS if is_typed(page, language)}

    assert {"INSTALL.md", "docs/tutorial.md", "docs/how-to/claim-a-disk.md"} <= typed
    assert len([page for page in typed if page.startswith("docs/how-to/")]) >= 8


def test_each_block_is_run_by_a_story_or_says_why_not() -> None:
    unknown = [(block[0], block[2][0]) for block in LEFT if len(of_block(block)) != 1]

    assert unknown == []


def test_each_section_of_install_with_commands_is_typed_by_a_story() -> None:
    sections = re.split(r"^## (.+)$", (ROOT / "INSTALL.md").read_text(), flags=re.MULTILINE)
    pairs = zip(sections[1::2], sections[2::2], strict=True)
    stories = "".join(file.read_text() for file in (ROOT / E2E).glob("*.py"))

    untyped = [name for name, text in pairs if "```sh" in text and f'"{name}"' not in stories]

    assert untyped == []


def test_nothing_is_listed_that_no_page_says() -> None:
    assert ELSEWHERE.keys() == {key for block in LEFT for key in of_block(block)}


@pytest.mark.parametrize("story", sorted({*WORD_FOR_WORD.values(), *ELSEWHERE.values()}))
def test_each_story_that_is_named_is_there(story: str) -> None:
    file, is_story, name = story.partition("::")
    if not is_story:
        assert story.endswith(".")
        return
    tree = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert not name or name in {node.name for node in tree.body if isinstance(node, functions)}


LINES_OF_PAGES = tuple((page, line) for page, _, commands in BLOCKS for line in commands)


def test_programs_have_the_commands_and_flags_that_pages_name() -> None:
    known = reference.commands_page()
    for page, line in LINES_OF_PAGES:
        for said in _OURS.findall(line):
            program = said.split()
            command = " ".join(program[: 3 if program[0] == "kubectl" else 2])
            assert f"\n### {command}" in known, f"{page}: {said}"
            flags = {word.partition("=")[0] for word in program if word.startswith("--")}
            assert [flag for flag in flags if f"`{flag}`" not in known] == [], f"{page}: {said}"


def test_each_image_that_is_typed_is_in_the_throw_away_cluster() -> None:
    """It reaches no registry, and a kubelet pulls whatever has no tag."""
    images = {
        (page, image)
        for page in subprocess.check_output(
            ("git", "ls-files", "*.md"), cwd=ROOT, text=True
        ).split()
        if any(page.startswith(name) for name in WORD_FOR_WORD)
        for image in re.findall(r"^ *image: ([^\s{]+)$", (ROOT / page).read_text(), re.MULTILINE)
    }

    assert {page for page, _ in images} >= {"INSTALL.md", "docs/tutorial.md"}
    assert {image for _, image in images} == {BUSYBOX_OF_PAGES}


def test_make_has_the_targets_that_pages_name() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page, line in LINES_OF_PAGES:
        for target in re.findall(r"^make ([a-z-]+)", line):
            assert f"\n{target}:" in makefile, f"{page}: {line}"
