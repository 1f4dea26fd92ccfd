"""Events that people are notified of, derived from rows of the ledger and from troubles; pure functions.

A repeated derivation gives the same notices with the same keys, so that the caller knows which are new. Names and
reasons come from outside: each is shown on one line, and shortened if it is very long.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pulsar_steward.apply.health import Level, recorded_level
from pulsar_steward.ledger.halts import EVERY_CLUSTER, VARIABLE
from pulsar_steward.ledger.questions import UNASKED_AFTER, why_unasked
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Notice, Occasion, notice_key
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.notify.compose import VARIABLES, cluster_path, history_path, plan_path, question_path, trouble_path
from pulsar_steward.outside_text import shown
from pulsar_steward.report.since import compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from pulsar_steward.ledger.batch_record import BatchRun
    from pulsar_steward.ledger.halts import HaltRow
    from pulsar_steward.ledger.questions import UnaskedQuestion, WaitingQuestion
    from pulsar_steward.notify.variable import VariableHalt
    from pulsar_steward.report.checkup.document import ChangedTrouble, SinceLook, TroubleReport
    from pulsar_steward.report.since import Look

MAX_NAME = 200
"""Maximum length of a title or subject from outside in a line, in characters."""

MAX_REASON = 600

MAX_STEPS = 5
"""Maximum number of steps of a batch whose ends are listed one by one."""

OF_OUTCOME = {
    Occasion.DONE: "done and proved",
    Occasion.REFUSED: "approved, and refused all the same",
    Occasion.STOPPED: "stopped itself: harm was done, or cannot be ruled out",
    Occasion.FAILED: "failed",
    Occasion.UNKNOWN: "nobody knows what came of a call",
}
"""Words for each way in which a batch ends."""

SEVERITIES = {
    Occasion.NOT_ASKED: Severity.WARNING,
    Occasion.WAITING: Severity.INFO,
    Occasion.EXPIRING: Severity.WARNING,
    Occasion.DONE: Severity.INFO,
    Occasion.REFUSED: Severity.WARNING,
    Occasion.STOPPED: Severity.CRITICAL,
    Occasion.FAILED: Severity.CRITICAL,
    Occasion.UNKNOWN: Severity.CRITICAL,
    Occasion.HALTED: Severity.WARNING,
    Occasion.RESUMED: Severity.INFO,
    Occasion.FINDING_NEW: Severity.CRITICAL,
    Occasion.FINDING_GONE: Severity.INFO,
}


def question_notices(questions: Iterable[WaitingQuestion], now: datetime, expiring: timedelta) -> Iterator[Notice]:
    """Notices of waiting questions, and of questions about to end without an answer.

    Args:
        questions: Questions that wait.
        now: Current time, UTC.
        expiring: Time before a question's end at which the second notice is due; at most half of its whole time.
    """
    for each in questions:
        ids = (each.plan_id, each.batch_id, each.run, str(each.voice))
        who = "a second person is asked" if each.voice > 1 else "a person is asked"
        until = time_in_words(each.ends_at)
        text = (
            f"{_name(each.title)}: {counted(each.steps, 'step')}, plan {_name(each.plan_id)}, batch"
            f" {_name(each.batch_id)}\nAsked at {time_in_words(each.asked_at)}. Nothing is changed before somebody"
            f" approves; no answer by {until} is a rejection."
        )
        make = partial(_notice, each.cluster, text=text, path=question_path(each.run, each.voice), plan_id=each.plan_id)
        yield make(Occasion.WAITING, *ids, at=each.asked_at, subject=f"{who}: {_name(each.title)}")
        begins = each.ends_at - min(expiring, (each.ends_at - each.asked_at) / 2)
        if now >= begins:
            subject = f"no answer yet, and none counts after {until}: {_name(each.title)}"
            yield make(Occasion.EXPIRING, *ids, each.asked_at.isoformat(), at=begins, subject=subject)


def unasked_notices(questions: Iterable[UnaskedQuestion], now: datetime, paused: bool | None) -> Iterator[Notice]:
    """Notices of questions that nobody was asked for a while; paused: None where it is not known of the asking DAG."""
    for each in questions:
        if now < each.since + UNASKED_AFTER:
            continue
        yield _notice(
            each.cluster,
            Occasion.NOT_ASKED,
            each.plan_id,
            each.batch_id,
            at=each.since + UNASKED_AFTER,
            subject=f"nobody was asked: {_name(each.title)}",
            text=(
                f"{counted(each.steps, 'step')}, plan {_name(each.plan_id)}, batch {_name(each.batch_id)}; published at"
                f" {time_in_words(each.since)}.\nNobody was asked since, because {why_unasked(paused)}."
            ),
            path=plan_path(each.plan_id, each.batch_id),
            plan_id=each.plan_id,
        )


def batch_notices(ends: Iterable[BatchRun]) -> Iterator[Notice]:
    """Notices of batches that ended; a batch with unfinished steps is left out."""
    for end in ends:
        each, occasion = end.record, _occasion(end)
        if occasion is None:
            continue
        yield _notice(
            each.cluster,
            occasion,
            each.plan_id,
            each.batch_id,
            end.run,
            at=max(step.at for step in end.outcomes),
            subject=f"{OF_OUTCOME[occasion]}: {_name(each.title)}",
            text="\n".join(_batch_lines(end)),
            path=plan_path(each.plan_id, each.batch_id),
            plan_id=each.plan_id,
        )


def halt_notices(halts: Iterable[HaltRow], clusters: Sequence[str]) -> Iterator[Notice]:
    """Notices of halts and resumptions; one for all clusters makes a notice for each."""
    for each in halts:
        for cluster in clusters if each.cluster == EVERY_CLUSTER else [each.cluster]:
            which = "every cluster" if each.cluster == EVERY_CLUSTER else "this cluster"
            words = "all changes are halted" if each.halted else "changes may be made again"
            ends = " `steward resume` ends it." if each.halted else ""
            yield _notice(
                cluster,
                Occasion.HALTED if each.halted else Occasion.RESUMED,
                str(each.halt_id),
                at=each.at,
                subject=f"{words}, by {_name(each.said_by)}",
                text=f"{_reason(each.reason)}\nOf {which}, since {time_in_words(each.at, seconds=True)}.{ends}",
                path=history_path(cluster),
            )


def variable_notices(seen: Mapping[str, VariableHalt]) -> Iterator[Notice]:
    """Notices of halts by Airflow's variable, and of their ends, by cluster."""
    for cluster, each in seen.items():
        words = "halts all changes" if each.halted else "halts no changes any more"
        value = f"Its value is {_name(each.value)}" if each.value else "It has no value"
        then = each.way_out if each.halted else "a halt by `steward halt` holds all the same"
        yield _notice(
            cluster,
            Occasion.HALTED if each.halted else Occasion.RESUMED,
            VARIABLE,
            each.at.isoformat(),
            at=each.at,
            subject=f"the Airflow variable {VARIABLE} {words}",
            text=f"{value}, as was seen at {time_in_words(each.at, seconds=True)}; {then}.",
            path=VARIABLES,
        )


def trouble_notices(cluster: str, looks: Sequence[Look]) -> Iterator[Notice]:
    """Notices of critical troubles that are new, worse or gone, by the last snapshots of a cluster, oldest first.

    Troubles of the first snapshot make no notice: they were notified before, or are too old. Each snapshot is compared
    with the last one that judged the trouble's checks: a partial one proves no absence, and makes no later one worse.
    """
    standing: Look | None = None
    for each in looks:
        look = replace(each, troubles=tuple(one for one in each.troubles if one.severity is Severity.CRITICAL))
        if standing is None:
            standing = look
            continue
        by_id = {one.trouble_id: one for one in (*standing.troubles, *look.troubles)}
        difference = compared(look, standing)
        for one in (*difference.new, *difference.worse):
            yield _trouble_notice(cluster, Occasion.FINDING_NEW, look, one, by_id[one.trouble_id])
        for one in difference.gone:
            yield _trouble_notice(cluster, Occasion.FINDING_GONE, look, one, by_id[one.trouble_id])
        standing = _standing(look, standing, difference)


def _standing(look: Look, before: Look, difference: SinceLook) -> Look:
    """What stands after a look: a trouble that it saw only in part is as it was before, unless it was told anew."""
    told = {each.trouble_id for each in (*difference.new, *difference.worse)}
    old = {each.trouble_id: each for each in before.troubles}
    now = [
        each if each.trouble_id in told or look.has_counted(each) else old.get(each.trouble_id, each)
        for each in look.troubles
    ]
    return replace(
        look,
        troubles=(*now, *(old[each.trouble_id] for each in difference.unseen)),
        counted=look.counted | before.counted,
        judged=look.judged | before.judged,
    )


def _trouble_notice(
    cluster: str, occasion: Occasion, look: Look, changed: ChangedTrouble, trouble: TroubleReport
) -> Notice:
    is_gone = occasion is Occasion.FINDING_GONE
    kind = "no longer critical" if is_gone else "critical, and worse" if changed.change else "critical, and new"
    because = f"{trouble.because}. " if trouble.because else ""
    to_do = f"First: {trouble.to_do[0]}" if trouble.to_do and not is_gone else ""
    said = _reason(" ".join(filter(None, ("" if is_gone else f"{because}{trouble.beware}", to_do))))
    seen = f"Seen at {time_in_words(look.taken_at)}; `steward explain {_name(trouble.check_ids[0])}` says more."
    return _notice(
        cluster,
        occasion,
        changed.trouble_id,
        look.snapshot_id,
        at=look.taken_at,
        subject=f"{kind}: {_name(changed.words)}",
        text="\n".join(filter(None, (said, seen))),
        path=cluster_path(cluster) if is_gone else trouble_path(cluster, changed.trouble_id),
    )


def _notice(
    cluster: str,
    occasion: Occasion,
    *ids: str,
    at: datetime,
    subject: str,
    text: str,
    path: str,
    plan_id: str | None = None,
) -> Notice:
    return Notice(
        key=notice_key(occasion, cluster, *ids),
        occasion=occasion,
        cluster=cluster,
        severity=SEVERITIES[occasion],
        at=at,
        subject=f"[{cluster}] {subject}",
        text=text,
        path=path,
        plan_id=plan_id,
    )


def _occasion(end: BatchRun) -> Occasion | None:
    """The way in which a batch ended; None: it goes on, its proof is still to come, or nothing was approved."""
    if not end.outcomes or (end.proof is None and len(end.outcomes) < len(end.approved)):
        return None
    seen = {step.outcome for step in end.outcomes}
    harmed = any(recorded_level(step) is Level.WORSE for step in end.outcomes)
    worst_first = (
        (Outcome.UNKNOWN in seen, Occasion.UNKNOWN),
        (Outcome.FAILED in seen, Occasion.FAILED),
        (harmed, Occasion.STOPPED),
        (not seen.isdisjoint({Outcome.REFUSED, Outcome.DRIFTED}), Occasion.REFUSED),
        (end.proof is not None and not end.proof.proved, Occasion.FAILED),
        (end.proof is not None, Occasion.DONE),
    )
    return next((occasion for holds, occasion in worst_first if holds), None)


def _batch_lines(end: BatchRun) -> Iterator[str]:
    outcomes = Counter(step.outcome for step in end.outcomes)
    sums = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcomes[outcome])
    plan_id, batch_id = map(_name, end.record.key)
    yield f"Plan {plan_id}, batch {batch_id}: {counted(len(end.outcomes), 'step')}: {sums}."
    wrong = [step for step in end.outcomes if step.outcome is not Outcome.DONE or recorded_level(step) is Level.WORSE]
    for step in wrong[:MAX_STEPS]:
        yield f"{_name(step.step_id)} {step.outcome}: {_reason(step.reason)}"
    if len(wrong) > MAX_STEPS:
        yield f"... and {counted(len(wrong) - MAX_STEPS, 'more step')}"
    if end.proof is not None:
        yield f"{'Proved' if end.proof.proved else 'Verification failed'}: {_reason(end.proof.reason)}"


def _name(words: str) -> str:
    return _shortened(words, MAX_NAME)


def _reason(words: str) -> str:
    return _shortened(words, MAX_REASON)


def _shortened(words: str, most: int) -> str:
    line = shown(words)
    return line if len(line) <= most else f"{line[: most - 1]}…"
