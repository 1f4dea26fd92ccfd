"""Logical cluster as text and as JSON: how full its members are, what would change, and what is not known."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from pulsar_steward.model.system import System
from pulsar_steward.model.units import MAX_NAMES, bytes_in_words, counted, named, seconds_in_words
from pulsar_steward.planners.clusters.model import RESOURCES, Resource
from pulsar_steward.planners.clusters.place import WORDS
from pulsar_steward.report.checkup.text import bullets, heading, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.planners.clusters.differences import Differences
    from pulsar_steward.planners.clusters.from_snapshots import MemberFacts
    from pulsar_steward.planners.clusters.losing import LostCluster, MissingNamespace
    from pulsar_steward.planners.clusters.model import MemberUse, Use
    from pulsar_steward.planners.clusters.place import NamespacePlacement

NEVER_KNOWN = {
    System.PULSAR: (
        "Topics that no broker has loaded are in no snapshot.",
        "Clusters that a tenant may use (`allowedClusters`) are in no snapshot: a move may need another one there.",
        "CPU is divided among namespaces by their bytes in and out, and is not forecast.",
        "Of a new cluster only its ceiling of topics is known.",
    ),
    System.KAFKA: (
        "A partition counts as a topic. Bytes, disks and traffic of Kafka are in no snapshot.",
        "Whether a mirror keeps topics of one name the same is not told.",
        "Transactions are told by no request of this client: only where their coordinators are.",
    ),
}
"""Sentences on facts that no snapshot tells."""

_NOT_KNOWN = "Whether all fits is not known"

LISTED = 20
"""Number of namespaces without a place that the text lists; JSON has all."""

FARTHEST_DAYS = 3650
"""Longest forecast; later than that is as good as never."""

NOT_KNOWN_OF_A_LOSS = (
    "Topics that no broker has loaded are in no snapshot.",
    "What was published or sent since the snapshot; what only this cluster's clients know.",
)
"""The same for a lost member."""

_MISSING = "{:<18} {:<14} {:>16} {:>9}  {:<16}"
_KEPT = ("lost", "not told")
_LEGEND = (
    "Served by: the cluster that lacks the least. Entries: a batch of messages is one. Subscriptions lost: their"
    " positions are at no other cluster."
)

_NAME = 18
_ROW = f"{{:<{_NAME}}} {{:<14}} {{:>6}} {{:>6}} {{:>6}}  {{:<10}}  {{:<10}}"
_STATES = (
    "now: as it is; then: with what is supposed; moved: after the moves; full: the first ceiling is reached; under:"
    " none is, and the growth is not known."
)


@dataclass(frozen=True, kw_only=True)
class WhatIfReport:
    """Content of the report.

    Attributes:
        facts: The members of which there is a snapshot.
        now: How full they are.
        placement: How full they would be, before and after moves.
        differences: Differences between them.
        unknown: Sentences on facts that are not known.
        unseen: Members without a snapshot.
        taken_at: Time of the newest snapshot; days of forecasts count from it.
        leaving: Members that all namespaces would leave.
        primary: Member whose address clients know, where it is declared.
        loss: What the others would miss if one were lost; None: nobody asked.
    """

    facts: tuple[MemberFacts, ...]
    now: tuple[MemberUse, ...]
    placement: NamespacePlacement
    differences: Differences
    unknown: tuple[str, ...]
    taken_at: datetime
    unseen: tuple[str, ...] = ()
    leaving: frozenset[str] = frozenset()
    primary: str | None = None
    loss: LostCluster | None = None

    @property
    def system(self) -> System:
        """System of all members."""
        return self.facts[0].meta.system

    @property
    def misfits(self) -> tuple[str, ...]:
        """Sentences on members and namespaces that do not fit after the moves; empty: none is known, or one is lost."""
        return () if self.loss else tuple(_misfits(self))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Sentences on why nobody can tell that all fits; empty: it is told, something does not, or one is lost."""
        return () if self.loss or self.misfits else tuple(_undecided(self))

    @property
    def fits(self) -> bool | None:
        """True if all fits after the moves, False if something does not; None: that is not known, or one is lost."""
        if self.misfits:
            return False
        return None if self.loss or self.undecided else True


def _misfits(report: WhatIfReport) -> Iterator[str]:
    placement = report.placement
    of_member = {
        member: sorted({each.namespace for each in group})
        for member, group in groupby(placement.unplaced, lambda each: each.member)
    }
    for name in sorted(report.leaving & of_member.keys()):
        yield f"{name} cannot leave: {_have_no_place(of_member[name])}"
    over = [each.member for each in placement.after if each.over and each.member not in report.leaving]
    if over:
        one = "topic" if report.system is System.KAFKA else "namespace"
        stuck = {name for member in over for name in of_member.get(member, ())}
        stay = counted(len(over), "member stays over its ceiling", "members stay over their ceiling")
        without = counted(len(stuck), f"{one} has", f"{one}s have")
        yield f"{stay}: {without} no place" if stuck else f"{stay}: no move would help"
    if new := of_member.get(None):
        yield _have_no_place(new)


def _undecided(report: WhatIfReport) -> Iterator[str]:
    """A new member counts where it lacks a ceiling of what drives a namespace there; Kafka has that of topics alone."""
    if report.unseen:
        yield f"{_NOT_KNOWN}: there is no snapshot of {named(report.unseen)}"
    partial = [each.name for each in report.facts if each.meta.unread]
    if partial:
        yield f"{_NOT_KNOWN}: parts of {named(partial)} could not be read"
    unbounded: dict[str, list[str]] = defaultdict(list)
    staying = {each.name for each in report.facts} - report.leaving
    told = RESOURCES if report.system is System.PULSAR else (Resource.TOPICS,)
    for member in report.placement.after:
        lacking = {use.resource for use in member.uses if use.ceiling is None and use.resource in told}
        driven = {words for move in report.placement.moves if move.target == member.member for words in move.unbounded}
        for resource in RESOURCES:
            if (member.member in staying and resource in lacking) or WORDS[resource] in driven:
                unbounded[WORDS[resource]].append(member.member)
    for words, members in unbounded.items():
        yield f"{_NOT_KNOWN}: no ceiling of {words} is known of {named(members)}"


def _have_no_place(names: Sequence[str]) -> str:
    """The first few names, and that they have no place."""
    if len(names) == 1:
        return f"{names[0]} has no place"
    joined = named(names) if len(names) > MAX_NAMES else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{joined} have no place"


def document(report: WhatIfReport) -> dict[str, Any]:
    """The report for programs."""
    placement = report.placement
    now = {each.member: each for each in report.now}
    held = {each.name: each for each in report.facts}
    members = [
        {
            "member": then.member,
            "now": _state(now.get(then.member), report.taken_at),
            "then": _state(then, report.taken_at),
            "moved": _state(moved, report.taken_at),
            "subscriptions": held[then.member].subscriptions if then.member in held else 0,
            "transaction_coordinators": held[then.member].coordinators if then.member in held else 0,
        }
        for then, moved in zip(placement.before, placement.after, strict=True)
    ]
    unknown = (*report.unknown, *NEVER_KNOWN[report.system])
    parts = {name: getattr(placement, name) for name in ("moves", "unplaced", "dropped")} | {"unknown": unknown}
    return {
        "fits": report.fits,
        "misfits": report.misfits,
        "undecided": report.undecided,
        "primary": report.primary,
        "members": members,
        **msgspec.to_builtins(parts | msgspec.structs.asdict(report.differences)),
        **({"loss": msgspec.to_builtins(report.loss)} if report.loss else {}),
    }


def _state(use: MemberUse | None, taken_at: datetime) -> dict[str, Any] | None:
    if use is None:
        return None
    uses = [
        {
            "resource": each.resource.value,
            "load": each.load,
            "ceiling": each.ceiling,
            "growth_per_day": each.growth,
            "full": _full(each, taken_at),
        }
        for each in use.uses
    ]
    return {"namespaces": use.namespaces, "uses": uses}


def _full(use: Use | None, taken_at: datetime) -> str:
    """Day on which a ceiling is reached, ``over`` or ``never``; ``under``: no growth is known, ``?``: no ceiling is."""
    days = None if use is None else use.days
    if days is None:
        return "?" if use is None or use.ceiling is None else "under"
    if days <= 0:
        return "over"
    return "never" if days > FARTHEST_DAYS else f"{taken_at + timedelta(days=math.floor(days)):%Y-%m-%d}"


def lines(report: WhatIfReport, width: int) -> Iterator[Text]:
    """The report for people, on at most so many columns; of a lost member, what the others would miss alone."""
    if report.loss is not None:
        yield from _loss(report.loss, width)
        yield from _part("Not known", (*report.unknown, *NOT_KNOWN_OF_A_LOSS), width)
        return
    for each in report.misfits:
        yield from wrapped(each, width, style="warning")
    for each in report.undecided:
        yield from wrapped(each, width, style="unknown")
    yield from _table(report)
    yield from wrapped(_STATES, width, style="quiet")
    yield from _moves(report.placement, width)
    yield from _part("No place is found for", _without_place(report), width)
    yield from _part(
        "Served by one member fewer, not moved",
        (f"{each.namespace} ({each.member}): {each.why}" for each in report.placement.dropped),
        width,
    )
    one = "consumer group" if report.system is System.KAFKA else "subscription"
    offsets = [
        f"{each.name}{', the primary' * (each.name == report.primary)}: {counted(each.subscriptions, one)},"
        f" {counted(each.coordinators, 'transaction coordinator')}"
        for each in report.facts
    ]
    offsets += _foreign_positions(report.differences)
    yield from _part("Where positions of subscriptions and transactions are", offsets, width)
    yield from _part("Differences between members", _differences(report.differences), width)
    yield from _part("Not known", (*report.unknown, *NEVER_KNOWN[report.system]), width)


def _without_place(report: WhatIfReport) -> Iterator[str]:
    """A line a namespace; of Kafka, where none is moved, a line a member."""
    unplaced = report.placement.unplaced
    if report.system is System.PULSAR:
        yield from (f"{it.namespace} ({it.member or 'new'}): {it.why}" for it in unplaced)
        return
    for (member, why), group in groupby(unplaced, lambda each: (each.member, each.why)):
        yield f"{named([each.namespace for each in group])} ({member or 'new'}): {why}"


def _foreign_positions(found: Differences) -> Iterator[str]:
    for each in found.foreign_positions:
        yield (
            f"{each.member} holds offsets of {counted(each.groups, 'group')} in {counted(each.topics, 'topic')} that"
            f" {f'{each.owner} has' if each.owner else 'no member has'}, such as {each.example}"
        )


def _loss(loss: LostCluster, width: int) -> Iterator[Text]:
    """A line a namespace of which something would be missing, and how many would be whole; 78 columns."""
    missing = [each for each in loss.namespaces if not each.is_complete]
    yield from wrapped(f"If {loss.cluster} were lost now, the others would be missing, by namespace:", width)
    yield from heading(_MISSING.format("namespace", "served by", "not sent", "waits for", "subscriptions").rstrip())
    for each in missing[:LISTED]:
        name, served = each.namespace, each.served_by[0] if each.served_by else "nobody else"
        if len(name) > _NAME:
            yield Text(name)
            name = ""
        kept = f"{each.subscriptions:,} kept" if each.subscriptions else ""
        numbers = (each.subscriptions_lost, each.subscriptions_unknown)
        lost, unknown = (f"{number:,} {words}" if number else "" for number, words in zip(numbers, _KEPT, strict=True))
        yield Text(_MISSING.format(name, served, *_unsent(each), lost or unknown or kept).rstrip())
        more = [f"and {unknown}"] if lost and unknown else []
        more += (
            [f"{counted(each.unsent_topics, 'topic is', 'topics are')} not sent there"] if each.unsent_topics else []
        )
        yield from bullets(more if each.served_by else [], width, indent=4)
    if len(missing) > LISTED:
        yield from wrapped(f"and {len(missing) - LISTED:,} more (--json has all)", width)
    whole = counted(len(loss.namespaces) - len(missing), "namespace")
    yield from wrapped(f"Nothing would be missing of {whole}, as far as brokers tell.", width)
    if loss.lower_bound:
        words = f"A part of {loss.cluster} could not be read: all numbers are lower bounds."
        yield from wrapped(words, width, style="unknown")
    yield from wrapped(_LEGEND, width, style="quiet")


def _unsent(each: MissingNamespace) -> tuple[str, str]:
    """What is not sent yet, and for how long the longest has waited."""
    if not each.served_by:
        return f"all {bytes_in_words(each.stored_bytes, rounded=True)}", ""
    if each.entries is None:
        return "not told", "not told"
    if not each.entries:
        return "nothing", ""
    entries = counted(each.entries, "entry", "entries")
    amount = entries if each.messages is None else counted(each.messages, "message")
    return amount, "not told" if each.delay_seconds is None else seconds_in_words(each.delay_seconds, rounded=True)


def _table(report: WhatIfReport) -> Iterator[Text]:
    """A row a member, of the resource that it uses most of; 78 columns."""
    yield from heading(_ROW.format("cluster", "most of", "now", "then", "moved", "full now", "full moved"))
    now = {each.member: each for each in report.now}
    for then, moved in zip(report.placement.before, report.placement.after, strict=True):
        today, most = now.get(then.member), then.fullest.resource
        name = then.member
        if len(name) > _NAME:
            yield Text(name)
            name = ""
        parts = (_percent(each, most) for each in (today, then, moved))
        full = (_full(each.first or each.fullest, report.taken_at) if each else "-" for each in (today, moved))
        yield Text(_ROW.format(name, WORDS[most], *parts, *full).rstrip())


def _percent(use: MemberUse | None, resource: str) -> str:
    found = next((each for each in use.uses if each.resource == resource), None) if use else None
    if found is None or found.ceiling is None:
        return "?" if found else "-"
    return f"{min(found.part, 99):.0%}"


def _moves(placement: NamespacePlacement, width: int) -> Iterator[Text]:
    moves = placement.moves
    if not moves:
        words = "can be moved" if placement.unplaced else "has to be moved"
        yield from wrapped(f"No namespace {words}.", width)
        return
    copied = bytes_in_words(placement.stored_bytes, rounded=True)
    yield from heading(f"Moves: {counted(len(moves), 'namespace')}, {copied} stored")
    for why, each in groupby(sorted(moves, key=lambda move: (move.source or "", move.why)), lambda move: move.why):
        yield from wrapped(f"{why}:", width)
        yield from bullets(
            (
                f"{it.namespace}: {it.source or 'new'} -> {it.target}, {bytes_in_words(it.stored_bytes, rounded=True)}"
                + (f" (whether {it.target} has the {', '.join(it.unbounded)} for it is not known)" * bool(it.unbounded))
                for it in each
            ),
            width,
        )


def _differences(found: Differences) -> Iterator[str]:
    for clash in found.clashes:
        if not clash.namespace:
            words = f"{counted(clash.topics, 'topic')} of the same name on {' and '.join(clash.members)}"
            yield f"{words}, such as {clash.example}"
            continue
        yield (
            f"{clash.namespace}: {counted(clash.topics, 'topic')} of the same name on {' and '.join(clash.members)},"
            f" which do not replicate them, such as {clash.example}"
        )
    if found.unserved:
        words = counted(len(found.unserved), "namespace is", "namespaces are")
        yield f"{words} served by no member, as policies name other clusters or none: {named(found.unserved)}"
    for each in found.differing:
        values = (f"{value} ({named(members)})" for value, members in each.members.items())
        yield f"{each.name}: {'; '.join(values)}"


def _part(title: str, items: Iterable[str], width: int) -> Iterator[Text]:
    """A heading and a list, cut to `LISTED`; nothing without items."""
    all_of_it: Sequence[str] = list(items)
    if not all_of_it:
        return
    yield from heading(title)
    yield from bullets(all_of_it[:LISTED], width)
    if len(all_of_it) > LISTED:
        yield from wrapped(f"and {len(all_of_it) - LISTED:,} more (--json has all)", width)
