"""Options of `serve` that decide which queue is charged; `kubectl moorage` reads them, too.

`kubectl moorage` reads the options from the Deployment of the release, so that its views judge as
the plugin does. It needs none of the plugin's other options.

Annotations are evaluated here, since subclasses in other modules make flags of them, too.
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
        help_="Name the profiles of the kube-scheduler; pods of other schedulers are not judged and"
        " not bound.",
        shown="moorage",
    ),
]
QueueLabel = Annotated[
    str,
    parsed(
        texts.label_key,
        metavar="KEY",
        help_="Set the key of the label that names the queue of a pod, claim or namespace.",
        shown=QUEUE_LABEL,
    ),
]
DefaultQueue = Annotated[
    QueueName,
    parsed(
        texts.queue,
        metavar="NAME",
        help_="Set the queue of pods for which nothing else names one (default: none).",
    ),
]
NonPreemptiblePriority = Annotated[
    int,
    parsed(
        texts.priority,
        metavar="NUMBER",
        help_="Set the priority from which on pods are non-preemptible.",
        shown="100",
    ),
]
ChargedForOrphans = Annotated[
    OrphanPolicy,
    typer.Option(
        help="Charge an allocated claim without an owner to the queue of its oldest pod, or to no"
        " queue."
    ),
]
OwnersLast = Annotated[
    OwnerLifetime,
    typer.Option(
        help="Keep an owner that was written at a binding until the allocation ends, or for the"
        " life of the claim."
    ),
]
PodGroups = Annotated[
    Sequence[Resource],
    parsed(
        texts.kinds,
        metavar="KINDS",
        help_="Set the kinds of PodGroups, as plural.version.group, or as plural.group for the"
        " version that the cluster serves, separated by commas; empty for none.",
        shown="KAI's, the coscheduling plugin's and Kubernetes' own",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings:
    """The settings of a release on which views depend: a flag for each field."""

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


_app = commands("serve", "Decide which queue is charged.")
_app.command("serve")(ReleaseSettings)


def release_settings(words: Sequence[str]) -> ReleaseSettings:
    """The settings of these flags, and the defaults of all others.

    Raises:
        SystemExit: With a sentence, if a flag is not valid.
    """
    found: ReleaseSettings = settings_of(_app, words, {})
    return found
