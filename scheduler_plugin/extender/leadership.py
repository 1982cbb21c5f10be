"""Whether this process may write: it follows the kube-scheduler beside it, which has a Lease.

    another holds it ─► ours holds it ─► the other's time is over ─► stores are as new ─► writes
                                └───────────── the Lease runs out, or another takes it ◄──┘

Two plugins must never write at the same time, and the later one must have read what the earlier
one wrote. The earlier one begins no write that its own Lease, as it saw it renewed last, might
not outlive. So the later one waits until the last renewal of another is older than the Lease's
duration for certain; a Lease that was released does not shorten that, since the earlier plugin
may be in the middle of a write. Then its stores must reach the state of that moment or later.

A holder that was never seen needs no wait of its own: its plugin had to wait in the same way, so
it wrote nothing unless it held the Lease for longer than that, and `transitions` tells whether
there was one. Moments are those of this process's own clock, in seconds; any origin will do. It
must go on while the process is stopped, as the event loop's does (CLOCK_MONOTONIC).

A process may be stopped, for as long as you like, between the answer that it may write and the end
of the write. What bounds that:

- What was sent before ends by itself: the API server was told how long the write may take, and
  gives up. The kernel may still deliver what a cut network held back; the server's time begins
  then.
- What waits for anything before it is sent, a connection for example, has that same time. It is
  over by the same clock when the process wakes up, and nothing is sent.
- What is sent in the very step that was stopped, after the answer and before the system call,
  meets the preconditions. An owner is written on the version of the claim that was judged, so on
  none that a successor wrote, or that was reserved or released meanwhile. A binding binds the pod
  of that UID while it has no node, so never one that a successor bound. If he has not, it is
  bound as it was judged; its claims are charged already, and where they were released meanwhile,
  the kubelet does not start it. Only what a pod requests as `akri.sh/…` is charged from its
  binding on: there such a pod may pass a limit that was reached while its binder was stopped.
  A status of a Queue says what was true then, until the successor sees it and writes it anew.
- A machine that is suspended stops that clock, too. Then the Lease is believed until the next
  look at it, a second after waking up, and the preconditions are all there is.

A kube-scheduler that was stopped wakes up as a leader and stays one until its `renewDeadline` is
over. It may not be told then that a Bind failed for a pod that its successor has bound: it would
take the pod's reservations back (`http_app.ExtenderApp`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look at the Lease showed.

    Attributes:
        holder: "" where nobody holds it, or there is none.
        until: Nobody else can have taken it before; NEVER where that is not certain.
        over: After that it has expired for certain, unless it is renewed.
    """

    holder: str
    until: float = NEVER
    over: float = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How its holder came by the Lease.

    Attributes:
        transitions: How often it passed from one holder to another.
        duration: Seconds that it is good for after a renewal.
        acquired: When its holder took it.
    """

    holder: str
    transitions: int
    duration: float
    acquired: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """All that is known of the Lease.

    Attributes:
        identity: Of the kube-scheduler beside us, without the unique part that it adds.
        last: The last look.
        holding: Of whoever held it last; it outlives a release.
        others_over: When the time of all earlier holders is over.
        known_from: The stores are as new as this moment; None while they know nothing.
    """

    identity: str
    last: Sight = Sight("")
    holding: Holding | None = None
    others_over: float = NEVER
    known_from: float | None = None

    def is_ours(self, holder: str) -> bool:
        """Whether this is the kube-scheduler beside us; each start of it has another end."""
        return bool(holder) and self.identity in (holder, holder.rpartition("_")[0])


def needs_holding(before: Leadership, sight: Sight, now: float) -> bool:
    """Whether it has to be read how the holder came by the Lease: it, or much time, has passed."""
    if not sight.holder:
        return False
    is_known = before.holding is not None and before.holding.holder == sight.holder
    return not is_known or now > before.last.until


def see(before: Leadership, sight: Sight, now: float, holding: Holding | None = None) -> Leadership:
    """Take a look at the Lease into account.

    Args:
        before: What was known.
        sight: What the look showed.
        now: A moment after the look.
        holding: Of the holder, where `needs_holding`.
    """
    over = max(before.others_over, _left_over(before, sight, holding, now))
    if sight.holder and not before.is_ours(sight.holder):
        over = max(over, sight.over)
    elif holding is not None:
        over = max(over, _unseen_over(before, holding, now))
    return replace(before, last=sight, others_over=over, holding=holding or before.holding)


def _left_over(before: Leadership, sight: Sight, holding: Holding | None, now: float) -> float:
    """When the time of another, who held the Lease at the last look, is over.

    One who lets go may have renewed it unseen since that look. Who was seen not to renew it for
    two thirds of its duration (client-go's 10 s of 15) had given up by then, and lost it.
    """
    last, left = before.last, before.holding
    if sight.holder == last.holder or not last.holder or before.is_ours(last.holder):
        return NEVER
    if left is None:
        return last.over
    # The look before this one, since the new holder cannot have come before it.
    looked = sight.until - holding.duration if holding else NEVER
    renewed = last.over - left.duration
    gave_up = looked - renewed >= left.duration * 2 / 3
    return last.over if gave_up else now + left.duration


def _unseen_over(before: Leadership, ours: Holding, now: float) -> float:
    """When the time of a holder is over that held the Lease before ours and was never seen."""
    known = before.holding
    passed_on = ours.transitions - (known.transitions if known else -1)
    if 0 <= passed_on <= 1:
        return NEVER
    return min(now, ours.acquired) + ours.duration


def needs_to_catch_up(leadership: Leadership, now: float) -> bool:
    """Whether the stores have to show what others wrote, who cannot write any more."""
    ours = leadership.is_ours(leadership.last.holder)
    return ours and now >= leadership.others_over and not _is_caught_up(leadership)


def caught_up(leadership: Leadership, moment: float) -> Leadership:
    """The stores are as new as this moment."""
    return replace(leadership, known_from=max(moment, leadership.known_from or NEVER))


def _is_caught_up(leadership: Leadership) -> bool:
    return leadership.known_from is not None and leadership.known_from >= leadership.others_over


def why_not(leadership: Leadership, seconds: float, now: float, lease: str) -> str:
    """Why a write that may take so long may not begin, as a sentence; "" where it may.

    Args:
        leadership: What is known.
        seconds: How long the write may take.
        now: The moment.
        lease: The Lease's name, for the sentence.
    """
    holder = leadership.last.holder
    if not holder:
        return (
            f"Nobody holds Lease {lease}: the kube-scheduler beside this process must have leader"
            " election on, and use this Lease."
        )
    if not leadership.is_ours(holder):
        return f'Lease {lease} is held by "{holder}", not by "{leadership.identity}" beside us.'
    if now < leadership.others_over:
        left = leadership.others_over - now
        return f"Who held Lease {lease} before may still write for {left:.1f} s."
    if not _is_caught_up(leadership):
        return f"What others wrote who held Lease {lease} before is not read yet."
    left = max(0.0, leadership.last.until - now)
    if left <= seconds:
        return f"Lease {lease} is ours for {left:.1f} s for certain: too short for {seconds:g} s."
    return ""
