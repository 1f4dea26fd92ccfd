"""Carries checks out on a snapshot: has their questions asked, and has them judge the answers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import CheckContext, Judgement, Scope
from pulsar_steward.diagnose.asking import Asker, NoAnswer, SnapshotSources, about_of, ask
from pulsar_steward.policy.division import divided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import About, Answers, Check
    from pulsar_steward.checks.views import View
    from pulsar_steward.parallel import MapOver
    from pulsar_steward.policy.schema import Policy

__all__ = ["DEFECT", "CheckResult", "SnapshotSources", "judged", "run_checks"]

log = logging.getLogger(__name__)

DEFECT = "The check itself failed, which is a defect: "
"""Begins the reason of a verdict of which the next try may say something else."""


@dataclass(frozen=True)
class CheckResult:
    """What a check said.

    Attributes:
        check: Which.
        judgement: What it said; one that broke says that it cannot tell.
    """

    check: Check
    judgement: Judgement


def run_checks(
    snapshot: SnapshotSources,
    policy: Policy,
    checks: Sequence[Check],
    views: Sequence[View],
    map_over: MapOver,
    threads: int = 1,
) -> list[CheckResult]:
    """What checks say of a snapshot; one that breaks does not take the others with it.

    Args:
        snapshot: Where its rows are.
        policy: The cluster's.
        checks: What is looked for.
        views: What their questions select from beside `pulsar_steward.checks.views`.
        map_over: Carries out what is asked of shards.
        threads: That one shard's database may use.
    """
    about = about_of(snapshot)
    askers = [asker_of(check, about, policy) for check in checks]
    answers = ask(snapshot, askers, views, map_over, threads)
    return [judged(check, each, answers[each.name]) for check, each in zip(checks, askers, strict=True)]


def asker_of(check: Check, about: About, policy: Policy) -> Asker:
    """A check with the limits that are in force for it."""
    own = policy.for_cluster(about.cluster) if policy.clusters else policy
    parts: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    if check.scope is Scope.NAMESPACE:
        division = divided(own, check.sections)
        numbered = enumerate(division.policies) if len(division.policies) > 1 else ()
        parts = tuple((getattr(each, check.section), tuple(division.names(number))) for number, each in numbered)
    context = CheckContext(about=about, policy=own, limits=getattr(own, check.section), parts=parts)
    return Asker(check.check_id, check, context)


def judged(check: Check, asker: Asker, answers: Answers | NoAnswer) -> CheckResult:
    """What a check says of the answers to its questions; one that breaks says that it cannot tell."""
    if isinstance(answers, NoAnswer):
        return CheckResult(check, Judgement(cannot_tell=f"{DEFECT}{answers}"))
    try:
        return CheckResult(check, check.judge(answers, asker.context))
    except Exception as error:
        log.exception("%s is broken on this snapshot", check.check_id)
        first_line = str(error).partition("\n")[0]
        return CheckResult(check, Judgement(cannot_tell=f"{DEFECT}{type(error).__name__}: {first_line}"))
