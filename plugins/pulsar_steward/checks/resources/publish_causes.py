"""Causes of slow publishing, ranked by evidence: findings of other checks on the same snapshot, assigned to brokers.

The weight of a cause is the severity of its finding. A cause that explains another finding weighs at least as much, and
comes first. For example, collections that stop a broker make its writes to bookies look slow, and a slow metadata store
delays ledger switches. One broker's own trouble explains only effects on that broker. It proves nothing if another
broker has the effect without the trouble, or if all brokers have the trouble.

Three kinds of cause come last. A few slow writes to bookies explain few slow entries, as each entry is one write. A
bookie slows only writes, so its trouble explains little if writes are quick. Full collections that ended before the
snapshot before explain nothing that is slow now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.resources.heap import LATELY
from pulsar_steward.checks.resources.slowness import STALLED
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.units import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulsar_steward.checks.check import JudgedRows, Queried

BOOKIES, COLLECTIONS, METADATA, SWITCHES = "bookie-thread-busy", "gc-pressure", "metadata-latency", "ledger-switch-slow"
STUCK_THREADS = "io-threads-stuck"

SEEN_FROM_INSIDE = (BOOKIES, METADATA, SWITCHES)
"""Checks of figures measured in a broker: they suffer if the broker stands still or waits for a processor."""

SERVES = {"bookie": BOOKIES, "zookeeper": METADATA}
"""Check that sees the effects of trouble in a process other than a broker, by its kind."""


@dataclass(frozen=True, eq=False)
class Cause:
    """Possible cause of slow publishing.

    Attributes:
        words: Its name in a sentence.
        check_id: The check that finds it; None for read-only bookies, which their own metrics report.
        explains: Checks whose findings it explains.
        local: True if it is one broker's own trouble; False if one broker's finding counts for all.
    """

    words: str
    check_id: str | None
    explains: tuple[str, ...] = ()
    local: bool = True


READ_ONLY = Cause("a read-only bookie", None, (BOOKIES,), local=False)

CAUSES = (
    Cause("a heap that stays full", "heap-pressure", (COLLECTIONS, *SEEN_FROM_INSIDE, STUCK_THREADS)),
    Cause("garbage collection", COLLECTIONS, (*SEEN_FROM_INSIDE, STUCK_THREADS)),
    Cause("busy processors", "cpu-busy", SEEN_FROM_INSIDE),
    Cause("stuck threads", STUCK_THREADS),
    READ_ONLY,
    Cause("bookies, or a thread that serves them", BOOKIES),
    Cause("a ZooKeeper server", "zookeeper-slow", local=False),
    Cause("the metadata store", METADATA, (SWITCHES,), local=False),
    Cause("switches to new ledgers", SWITCHES),
    Cause("direct memory", "direct-memory-pressure"),
    Cause("logging at DEBUG", "logging-debug", SEEN_FROM_INSIDE),
    Cause("a hot bundle", "hot-bundle"),
    Cause("ack holes", "ack-holes"),
)
"""With equal weight, the earlier one comes first: causes that slow a whole process, then causes that slow a write."""

NO_WEIGHT = -1
"""Less than the weight of information."""

RESTS_ON = tuple(cause.check_id for cause in CAUSES if cause.check_id is not None)


@dataclass(frozen=True)
class Sighting:
    """Worst finding of a cause at a broker, or in another process, of this `kind`."""

    cause: Cause
    finding: Finding
    kind: str | None = None

    @property
    def explains(self) -> tuple[str, ...]:
        """Checks whose findings it explains."""
        return self.cause.explains if self.kind is None else (SERVES.get(self.kind, ""),)

    @property
    def by_latency(self) -> bool:
        """True if only the latency of a broker's own writes shows it; these may be too few to matter."""
        of_writes = self.kind is None and self.finding.check_id == BOOKIES
        return of_writes and STALLED in self.finding.figures

    @property
    def over(self) -> bool:
        """True if its full collections were before the snapshot before: publishing is slow now without them."""
        return self.finding.check_id == COLLECTIONS and self.finding.figures.get(LATELY) == 0

    def set_aside(self, *, writes_are_quick: bool) -> bool:
        """True if most slow entries have another cause. If writes are quick, a bookie is none: it slows only writes."""
        return self.over or (writes_are_quick and (self.by_latency or self.kind == "bookie"))

    @property
    def words(self) -> str:
        """Its name, with the check and its severity."""
        if self.cause.check_id is None:
            return self.cause.words
        severity = "information" if self.finding.severity is Severity.INFO else self.finding.severity.value
        return f"{self.cause.words} ({self.cause.check_id}, {severity})"


class CausesOfSlowness:
    """Findings of other checks that may slow publishing, by broker.

    Args:
        results: Results of the checks `RESTS_ON`, by id.
        publishing: Brokers with any publishing.
        kinds: Kinds of processes that are not brokers, by source.
        read_only: Bookies that take no writes.
    """

    def __init__(
        self,
        results: Mapping[str, JudgedRows],
        publishing: Iterable[str],
        kinds: Mapping[str, str],
        read_only: Sequence[str],
    ) -> None:
        self._publishing = frozenset(publishing)
        self._at: dict[Cause, dict[str, Sighting]] = {cause: {} for cause in CAUSES}
        self._elsewhere = [
            Sighting(
                READ_ONLY,
                Finding(
                    check_id="publish-slow",
                    severity=Severity.WARNING,
                    subject=bookie,
                    evidence=f"Bookie {bookie} takes no writes, by its own metrics: all writes go to the others.",
                ),
                "bookie",
            )
            for bookie in read_only
        ]
        self.unknown = tuple(each for each in RESTS_ON if results[each].judgement.cannot_tell is not None)
        for cause in CAUSES:
            if cause.check_id is not None:
                self._sight(cause, results[cause.check_id], kinds)

    @classmethod
    def among(cls, results: Mapping[str, JudgedRows], publishing: Iterable[str], queried: Queried) -> CausesOfSlowness:
        """Causes, from the results `processes` and `read_only` of the calling check."""
        kinds = {row["source"]: row["source_kind"] for row in queried["processes"].rows}
        return cls(results, publishing, kinds, [row["source"] for row in queried["read_only"].rows])

    def in_words(self, broker: str, *, writes_are_quick: bool = False, limit: str | None = None) -> str:
        """Sentence with the likeliest cause of a broker's slowness, its evidence, and the names of other causes.

        Args:
            broker: The broker.
            writes_are_quick: See `Sighting.set_aside`.
            limit: The limit for which producers wait, which comes before all that others found; None: there is none.
        """
        ranked = self.of(broker, writes_are_quick=writes_are_quick)
        if limit is not None:
            also = f" Besides: {named([each.words for each in ranked])}." if ranked else ""
            return f"Most likely cause: a limit of a rate (limit-reached, warning): {limit}{also}"
        causes = [each for each in ranked if not each.set_aside(writes_are_quick=writes_are_quick)]
        others = [each for each in ranked if each not in causes[:1]]
        also = f" Besides: {named([each.words for each in others])}." if others else ""
        if not causes:
            unknown = f"; not judged: {named(self.unknown)}" if self.unknown else ""
            return f"No other check names a cause{' of most of it' if others else ''}{unknown}.{also}"
        first = causes[0]
        likely = "Possible" if first.finding.severity is Severity.INFO else "Most likely"
        return f"{likely} cause: {first.words}: {first.finding.evidence}{also}"

    def _sight(self, cause: Cause, result: JudgedRows, kinds: Mapping[str, str]) -> None:
        """Assigns each finding to a broker, if its subject is one or is on one; else to the subject's own process."""
        places = _places(result)
        worst_first = sorted(result.judgement.findings, key=lambda each: -each.severity.rank)
        for finding in worst_first:
            if (kind := kinds.get(finding.subject)) is not None:
                self._elsewhere.append(Sighting(cause, finding, kind))
            else:
                broker = places.get(finding.subject, finding.subject)
                self._at[cause].setdefault(broker, Sighting(cause, finding))

    def of(self, broker: str, *, writes_are_quick: bool = False) -> list[Sighting]:
        """Causes of a broker's slowness, the best supported first; see `Sighting.set_aside` of quick writes."""
        here = [each for at in self._at.values() if (each := at.get(broker)) is not None]
        shared = [
            next(iter(at.values())) for cause, at in self._at.items() if not cause.local and at and broker not in at
        ]
        sightings = sorted([*here, *shared, *self._elsewhere], key=lambda each: CAUSES.index(each.cause))
        aside = [each.set_aside(writes_are_quick=writes_are_quick) for each in sightings]
        weights = [
            NO_WEIGHT if without else each.finding.severity.rank for each, without in zip(sightings, aside, strict=True)
        ]
        places = [float(number) for number in range(len(sightings))]
        for number, sighting in reversed(list(enumerate(sightings))):
            if aside[number]:
                continue
            explained = [other for other, effect in enumerate(sightings) if self._explains(sighting, effect)]
            weights[number] = max([weights[number], *(weights[other] for other in explained)])
            places[number] = min([places[number], *(places[other] - 0.5 for other in explained)])
        order = sorted(range(len(sightings)), key=lambda number: (-weights[number], places[number]))
        return [sightings[number] for number in order]

    def _explains(self, sighting: Sighting, effect: Sighting) -> bool:
        if effect.kind is not None or effect.cause.check_id is None:
            return False
        if effect.cause.check_id not in sighting.explains:
            return False
        if sighting.kind is not None or not sighting.cause.local:
            return True
        suffering = {at for at, each in self._at[sighting.cause].items() if not each.over}
        seeing = {
            at
            for at, each in self._at[effect.cause].items()
            if each.finding.severity is not Severity.INFO and not each.over
        }
        return seeing <= suffering and bool(self._publishing - suffering)


def _places(result: JudgedRows) -> dict[str, str]:
    """Broker of each subject that is a subscription or a bundle, from the results that contain it."""
    places = {}
    for selected in result.queried.values():
        for row in selected.rows:
            if row.get("subscription") is not None and row.get("broker") is not None:
                places[subject_of(row)] = row["broker"]
            elif row.get("bundle") is not None and row.get("owner") is not None:
                places[f"{row['namespace']}/{row['bundle']}"] = row["owner"]
    return places
