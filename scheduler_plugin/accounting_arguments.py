"""Options that decide who is charged: of `serve`, and read again by `kubectl moorage`.

What the plugin of a release was told is read from its Deployment, so that a view says what the
plugin does. A view lasts a moment, and needs none of the plugin's other options.

Annotations are evaluated here: subclasses of other modules make flags of them, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from kube.command_settings import commands, parsed, settings_of
from kube.kinds import Resource
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    QUEUE_LABEL,
    AccountingSettings,
    OrphanPolicy,
    OwnerLifetime,
    QueueName,
)

SCHEDULERS = ("moorage",)

SchedulerName = Annotated[
    Sequence[str],
    parsed(
        texts.names,
        metavar="NAME[,NAME...]",
        help_="The kube-scheduler's profiles: pods of others are not judged and not bound.",
        shown="moorage",
    ),
]
QueueLabel = Annotated[
    str, parsed(texts.label_key, metavar="KEY", help_="Names queues.", shown=QUEUE_LABEL)
]
DefaultQueue = Annotated[
    QueueName,
    parsed(
        texts.queue,
        metavar="NAME",
        help_="Queue of pods for which nothing else names one (default: none).",
    ),
]
NonPreemptiblePriority = Annotated[
    int,
    parsed(
        texts.priority,
        metavar="NUMBER",
        help_="Pods of at least this priority are non-preemptible.",
        shown="100",
    ),
]
ChargedForOrphans = Annotated[
    OrphanPolicy,
    typer.Option(help="Whom an allocated claim without an owner is charged to."),
]
OwnersLast = Annotated[
    OwnerLifetime,
    typer.Option(help="How long an owner that was written at a binding stays."),
]
PodGroups = Annotated[
    Sequence[Resource],
    parsed(
        texts.kinds,
        metavar="KINDS",
        help_="Kinds of PodGroups, as plural.version.group, with commas between them; empty for"
        " none.",
        shown="KAI's, the coscheduling plugin's and Kubernetes' own",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings:
    """What a release was told, as far as views depend on it: a flag for each field."""

    scheduler_name: SchedulerName = SCHEDULERS
    queue_label: QueueLabel = QUEUE_LABEL
    default_queue: DefaultQueue = NO_QUEUE
    non_preemptible_priority: NonPreemptiblePriority = 100
    orphan_policy: ChargedForOrphans = OrphanPolicy.OLDEST_POD
    owner_lifetime: OwnersLast = OwnerLifetime.ALLOCATION
    pod_groups: PodGroups = texts.POD_GROUPS

    @property
    def accounting(self) -> AccountingSettings:
        return AccountingSettings(
            queue_label=self.queue_label,
            default_queue=self.default_queue,
            scheduler_names=frozenset(self.scheduler_name),
            non_preemptible_priority=self.non_preemptible_priority,
            orphan_policy=self.orphan_policy,
            owner_lifetime=self.owner_lifetime,
        )


_app = commands("serve", "What decides who is charged.")
_app.command("serve")(ReleaseSettings)


def release_settings(words: Sequence[str]) -> ReleaseSettings:
    """What these flags say, and the defaults for all others.

    Raises:
        SystemExit: With a sentence, on flags that make no sense.
    """
    found: ReleaseSettings = settings_of(_app, words, {})
    return found
