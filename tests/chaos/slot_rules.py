"""What has to hold of slots, where devices go through the device-plugin API.

A slot says who holds it: `<node>`, or `C:<virtual device>:<node>` where a pod asked for any device
of the Configuration. The kubelets' lists say who uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tests.chaos.findings import Finding
from tests.chaos.node_reports import NodeReport
from tests.chaos.objects import PREFIX, Snapshot

Holds = Mapping[str, Counter[str]]
"""Of each node: what it holds. Slots are named by themselves, uses of any device by the virtual
device with `C:` before it."""
ANY = "C:"


def slot_findings(reports: Iterable[NodeReport], snapshot: Snapshot) -> Iterator[Finding]:
    """Everything that must not be; nodes whose kubelets do not answer are left out."""
    heard = [report for report in reports if report.listed is not None]
    held = _held(snapshot)
    for report in heard:
        used = _used(report, snapshot)
        mine = held.get(report.node, Counter())
        for name in sorted({*mine} | {*used}):
            about = f"slot {name} of {report.node}"
            if mine[name] > 1:
                yield Finding("held-twice", about, f"it is held {mine[name]} times")
            if mine[name] and not used[name]:
                yield Finding("slot-of-nobody", about, "no container has it")
            if used[name] > mine[name]:
                sentence = f"{used[name]} containers have it, and it is held {mine[name]} times"
                yield Finding("not-held", about, sentence)


def _held(snapshot: Snapshot) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for instance in snapshot.all("instances"):
        for slot, holder in (instance["spec"].get("deviceUsage") or {}).items():
            kind, _, rest = holder.partition(":")
            if rest:
                virtual, _, node = rest.rpartition(":")
                found.setdefault(node, Counter())[f"{kind}:{virtual}"] += 1
            elif holder:
                found.setdefault(holder, Counter())[slot] += 1
    return found


def _used(report: NodeReport, snapshot: Snapshot) -> Counter[str]:
    configurations = {key[1] for key in snapshot.objects.get("configurations", {})}
    configurations |= {i["spec"]["configurationName"] for i in snapshot.all("instances")}
    return Counter(
        f"{ANY}{virtual}" if resource.removeprefix(PREFIX) in configurations else virtual
        for listed in report.listed or ()
        for resource, virtuals in listed.devices.items()
        if resource.startswith(PREFIX)
        for virtual in virtuals
    )
