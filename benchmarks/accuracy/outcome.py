"""Outcomes of the faults, one each, and the score of each check over all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.accuracy.judging import Judgement
from lab.faults.fault import MadeUpFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.accuracy.scenes import Scene
    from lab.faults.fault import Fault
    from pulsar_steward.model.finding import Finding


@dataclass(frozen=True)
class Outcome:
    """Outcome of one fault.

    Attributes:
        fault: What was made.
        judgement: Empty where it could not be made or looked at.
        seconds: Until brokers showed it; of a simulated one, until it was judged.
        failure: Why it could not be made or looked at.
        at_first: Why it could not be made the first time; None: it could. It was made a second time then.
    """

    fault: Fault
    judgement: Judgement = field(default_factory=Judgement)
    seconds: float = 0.0
    failure: str | None = None
    at_first: str | None = None

    @property
    def right(self) -> bool:
        """True if it was looked at, nothing missed and nothing found falsely."""
        return self.failure is None and self.judgement.right

    @property
    def kind(self) -> str:
        """``real`` or ``simulated``."""
        return "simulated" if isinstance(self.fault, MadeUpFault) else "real"


@dataclass(frozen=True)
class SceneOutcome:
    """Outcomes of the faults that were looked at together.

    Attributes:
        scene: Which ones.
        outcomes: One for each of them.
        strays: What was found at warning or critical of no fault, and is allowed by none: false.
        seconds: From making them to having cleared them away, without the lab's start.
    """

    scene: Scene
    outcomes: tuple[Outcome, ...]
    strays: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """True if every fault is right, and nothing else was found falsely."""
        return not self.strays and all(outcome.right for outcome in self.outcomes)


@dataclass(frozen=True)
class Score:
    """Number of times that a check, or all of them, found the expected.

    Attributes:
        found: Expected findings that were there.
        missed: Expected findings that were not.
        false: Faults, healthy namespaces or scenes of which it reported what is not so.
    """

    found: int = 0
    missed: int = 0
    false: int = 0

    @property
    def precision(self) -> float | None:
        """Share of what it reported that is so; None where it reported nothing."""
        return _share(self.found, self.false)

    @property
    def recall(self) -> float | None:
        """Share of what is so that it reported; None where nothing was expected of it."""
        return _share(self.found, self.missed)


def scores(scenes: Iterable[SceneOutcome], check_ids: Sequence[str] = ()) -> dict[str, Score]:
    """Each check's score, by its id; those in ``check_ids`` are there also when no fault speaks of them."""
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    false: Counter[str] = Counter()
    together = list(scenes)
    for scene in together:
        false.update({finding.check_id for finding in scene.strays})
    for outcome in (outcome for scene in together for outcome in scene.outcomes):
        judgement = outcome.judgement
        found.update(expected.check_id for expected in judgement.found)
        missed.update(each.expected.check_id for each in judgement.missed)
        false.update({finding.check_id for finding in judgement.false})
        if outcome.failure is not None:  # nobody looked: what was expected was not found
            missed.update(expected.check_id for expected in outcome.fault.expected)
    known = sorted({*check_ids, *found, *missed, *false})
    return {check_id: Score(found[check_id], missed[check_id], false[check_id]) for check_id in known}


def total(each: Iterable[Score]) -> Score:
    """The score of several checks together."""
    rows = list(each)
    return Score(*(sum(getattr(row, name) for row in rows) for name in ("found", "missed", "false")))


def _share(right: int, wrong: int) -> float | None:
    return right / (right + wrong) if right + wrong else None
