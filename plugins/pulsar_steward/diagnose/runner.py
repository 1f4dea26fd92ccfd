"""Runs checks on a snapshot: their questions first, then their judgement of the answers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import CheckContext, Judgement, Scope
from pulsar_steward.diagnose.asking import NoAnswer, SnapshotSources, about_of, ask
from pulsar_steward.diagnose.questions import Asker
from pulsar_steward.policy.division import divided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import About, Answers, Check
    from pulsar_steward.checks.views import View
    from pulsar_steward.parallel import MapOver
    from pulsar_steward.policy.schema import Policy

__all__ = ["CheckResult", "SnapshotSources", "judged", "run_checks"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckResult:
    """Result of a check.

    Attributes:
        check: The check.
        judgement: Its judgement; "cannot tell" if it failed.
    """

    check: Check
    judgement: Judgement


def run_checks(
    snapshot: SnapshotSources,
    policy: Policy,
    checks: Sequence[Check],
    views: Sequence[View],
    map_over: MapOver,
) -> list[CheckResult]:
    """Runs checks on a snapshot; a check that fails does not affect the others.

    Args:
        snapshot: Sources of its rows.
        policy: The cluster's policy.
        checks: The checks.
        views: Views that their questions select from besides `pulsar_steward.checks.views`.
        map_over: Runs the questions to shards.
    """
    about = about_of(snapshot)
    askers = [asker_of(check, about, policy) for check in checks]
    answers = ask(snapshot, askers, views, map_over)
    return [judged(check, each, answers[each.name]) for check, each in zip(checks, askers, strict=True)]


def asker_of(check: Check, about: About, policy: Policy) -> Asker:
    """Questions of a check, with the limits in force for it."""
    own = policy.for_cluster(about.cluster) if policy.clusters else policy
    parts: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    if check.scope is Scope.NAMESPACE:
        division = divided(own, check.sections)
        numbered = enumerate(division.policies) if len(division.policies) > 1 else ()
        parts = tuple((getattr(each, check.section), tuple(division.names(number))) for number, each in numbered)
    context = CheckContext(about=about, policy=own, limits=getattr(own, check.section), parts=parts)
    return Asker(check.check_id, check, context)


def judged(check: Check, asker: Asker, answers: Answers | NoAnswer) -> CheckResult:
    """Judgement of a check on the answers to its questions; "cannot tell" if it fails."""
    if isinstance(answers, NoAnswer):
        return CheckResult(check, _broken(str(answers)))
    try:
        return CheckResult(check, check.judge(answers, asker.context))
    except Exception as error:
        log.exception("%s is broken on this snapshot", check.check_id)
        first_line = str(error).partition("\n")[0]
        return CheckResult(check, _broken(f"{type(error).__name__}: {first_line}"))


def _broken(words: str) -> Judgement:
    return Judgement(cannot_tell=f"The check itself failed, which is a defect: {words}", broke=True)
