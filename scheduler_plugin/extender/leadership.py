"""Whether this process may write: it may while the kube-scheduler beside it holds the Lease.

    another holds it ─► ours holds it ─► the other's time is over ─► stores are as new ─► writes
                                └───────────── the Lease expires, or another takes it ◄───┘

Two plugins must never write concurrently, and the later one must have read what the earlier one
wrote. The earlier plugin begins no write that could end after its own Lease, as of the last renewal
that it saw. So the later plugin waits until another holder's last renewal is certainly older than
the Lease's duration. A release does not shorten the wait, since the earlier plugin may be in the
middle of a write. Then the stores of the later plugin must reach the state of that moment.

A holder that this process never observed needs no wait of its own: its plugin had to wait in the
same way, so it wrote nothing unless it held the Lease for longer than that. `transitions` tells
whether there was such a holder. Moments are seconds of this process's own clock, of any origin. The
clock must run while the process is stopped, as the event loop's does (CLOCK_MONOTONIC).

A process may be stopped for any time between the answer that it may write and the end of the write.
These bounds hold then:

- A request that was sent before ends by itself: it carries a timeout, and the API server gives up.
  The kernel may still deliver what a cut network held back; the server's time begins then.
- A request that waits before it is sent, for a connection for example, has the same timeout. When
  the process continues, the timeout is over by the same clock, and nothing is sent.
- A request that is sent in the very step that was stopped, between the answer and the system call,
  meets the preconditions. An owner is written on the version of the claim that was judged, so never
  on one that a successor wrote, or that was reserved or released meanwhile. A binding binds the pod
  of that UID while it has no node, so never one that a successor bound. If the successor has not
  bound the pod, it is bound as judged: its claims are charged already, and if they were released
  meanwhile, the kubelet does not start it. Only requests for `akri.sh/…` are charged from the
  binding on: such a pod may exceed a limit that was reached while its binder was stopped. The
  status of a Queue says what was true then, until the successor sees it and writes it again.
- A suspended machine stops that clock, too. Then the Lease counts as held until the next look, one
  second after the machine continues, and only the preconditions hold.

A kube-scheduler that was stopped continues as a leader until its `renewDeadline` is over. It must
not be told then that a Bind failed for a pod that its successor has bound: it would remove the
pod's reservations (`http_app.ExtenderApp`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """What one look at the Lease showed.

    Attributes:
        holder: The holder's identity; "" if the Lease has no holder or does not exist.
        until: No other process can take the Lease before this moment; NEVER if uncertain.
        over: The Lease has certainly expired after this moment, unless it is renewed.
    """

    holder: str
    until: float = NEVER
    over: float = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """How the holder acquired the Lease.

    Attributes:
        transitions: How often the Lease changed its holder.
        duration: Seconds until the Lease expires after a renewal.
        acquired: When the holder acquired it.
    """

    holder: str
    transitions: int
    duration: float
    acquired: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """All that is known of the Lease.

    Attributes:
        identity: The host name of the kube-scheduler beside us, without its unique suffix.
        last: The last look.
        record: How the last holder acquired the Lease; it outlives a release.
        others_over: When the time of all earlier holders is over.
        known_from: The stores are as new as this moment; None before the first sync.
    """

    identity: str
    last: LeaseObservation = LeaseObservation("")
    record: LeaseRecord | None = None
    others_over: float = NEVER
    known_from: float | None = None

    def is_ours(self, holder: str) -> bool:
        """Whether this is the kube-scheduler beside us; each start of it has another suffix."""
        return bool(holder) and self.identity in (holder, holder.rpartition("_")[0])


def needs_record(before: Leadership, observation: LeaseObservation, now: float) -> bool:
    """Whether the Lease object must be read: its holder changed, or its time may be over."""
    if not observation.holder:
        return False
    is_known = before.record is not None and before.record.holder == observation.holder
    return not is_known or now > before.last.until


def see(
    before: Leadership, observation: LeaseObservation, now: float, record: LeaseRecord | None = None
) -> Leadership:
    """The leadership after a look at the Lease.

    Args:
        before: What was known.
        observation: What the look showed.
        now: A moment after the look.
        record: How the holder acquired the Lease, if `needs_record`.
    """
    over = max(before.others_over, _previous_over(before, observation, record, now))
    if observation.holder and not before.is_ours(observation.holder):
        over = max(over, observation.over)
    elif record is not None:
        over = max(over, _unobserved_over(before, record, now))
    return replace(before, last=observation, others_over=over, record=record or before.record)


def _previous_over(
    before: Leadership, observation: LeaseObservation, record: LeaseRecord | None, now: float
) -> float:
    """When the time of another holder is over that held the Lease at the last look.

    A holder that releases the Lease may have renewed it after that look. A holder that did not
    renew it for two thirds of its duration (client-go: 10 s of 15 s) had stopped leading by then.
    """
    last, left = before.last, before.record
    if observation.holder == last.holder or not last.holder or before.is_ours(last.holder):
        return NEVER
    if left is None:
        return last.over
    # The moment of the look before this one: the new holder cannot be older.
    looked = observation.until - record.duration if record else NEVER
    renewed = last.over - left.duration
    gave_up = looked - renewed >= left.duration * 2 / 3
    return last.over if gave_up else now + left.duration


def _unobserved_over(before: Leadership, ours: LeaseRecord, now: float) -> float:
    """When the time of a holder is over that held the Lease before ours and was never observed."""
    known = before.record
    passed_on = ours.transitions - (known.transitions if known else -1)
    if 0 <= passed_on <= 1:
        return NEVER
    return min(now, ours.acquired) + ours.duration


def needs_to_catch_up(leadership: Leadership, now: float) -> bool:
    """Whether the stores must catch up with the writes of earlier holders, whose time is over."""
    ours = leadership.is_ours(leadership.last.holder)
    return ours and now >= leadership.others_over and not _is_caught_up(leadership)


def caught_up(leadership: Leadership, moment: float) -> Leadership:
    """The stores are as new as this moment."""
    return replace(leadership, known_from=max(moment, leadership.known_from or NEVER))


def _is_caught_up(leadership: Leadership) -> bool:
    return leadership.known_from is not None and leadership.known_from >= leadership.others_over


def why_not(leadership: Leadership, seconds: float, now: float, lease: str) -> str:
    """Why a write of that many seconds may not begin, as a sentence; "" if it may.

    Args:
        leadership: What is known.
        seconds: How long the write may take.
        now: The moment.
        lease: The Lease's namespace and name, for the sentence.
    """
    holder = leadership.last.holder
    if not holder:
        return (
            f"Lease {lease} has no holder: turn leader election on in the kube-scheduler beside"
            " this process, with this Lease."
        )
    if not leadership.is_ours(holder):
        return (
            f'"{holder}" holds Lease {lease}; "{leadership.identity}" beside this process does not.'
        )
    if now < leadership.others_over:
        left = leadership.others_over - now
        return f"The previous holder of Lease {lease} may still write for {left:.1f} s."
    if not _is_caught_up(leadership):
        return f"The writes of the previous holder of Lease {lease} are not read yet."
    left = max(0.0, leadership.last.until - now)
    if left <= seconds:
        return (
            f"Lease {lease} is certainly held for {left:.1f} s: this is too short for a write of"
            f" {seconds:g} s."
        )
    return ""
