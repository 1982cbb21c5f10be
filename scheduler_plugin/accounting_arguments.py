"""Options of `serve` that decide about charges; `kubectl moorage` reads them, too.

`kubectl moorage` reads the plugin's flags from its Deployment, so that a view follows the same
settings. It needs none of the plugin's other options.

Annotations are evaluated in this module, since subclasses in other modules make flags of them.
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
        help_="The kube-scheduler's profiles: pods of other schedulers are not judged or bound.",
        shown="moorage",
    ),
]
QueueLabel = Annotated[
    str,
    parsed(texts.label_key, metavar="KEY", help_="The key of the queue label.", shown=QUEUE_LABEL),
]
DefaultQueue = Annotated[
    QueueName,
    parsed(
        texts.queue,
        metavar="NAME",
        help_="The queue of pods without a queue of another source (default: none).",
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
    typer.Option(help="Which queue an allocated claim without an owner is charged to."),
]
OwnersLast = Annotated[
    OwnerLifetime,
    typer.Option(help="How long an owner that a binding wrote stays."),
]
PodGroups = Annotated[
    Sequence[Resource],
    parsed(
        texts.kinds,
        metavar="KINDS",
        help_="Kinds of PodGroups as plural.version.group, separated by commas; empty for none.",
        shown="KAI's, the coscheduling plugin's and Kubernetes' own",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings:
    """The settings of a release that views depend on: a flag for each field."""

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


_app = commands("serve", "The options that decide about charges.")
_app.command("serve")(ReleaseSettings)


def release_settings(words: Sequence[str]) -> ReleaseSettings:
    """The settings of these flags, with defaults for all others.

    Raises:
        SystemExit: A flag is invalid; the message says why.
    """
    found: ReleaseSettings = settings_of(_app, words, {})
    return found
