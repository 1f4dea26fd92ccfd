"""Ledgers with a larger ensemble than there are bookies: none can be created, and writes to topics fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class EnsembleTooLargePolicy(Section):
    """Thresholds for ensembles compared with the number of bookies."""

    information_spare_bookies: int = Field(
        1,
        ge=0,
        description="bookies beyond an ensemble that may be away before no ledger can be made; with fewer it is"
        " information, and nothing where there is one bookie alone",
    )


DEFAULT = "managedLedgerDefaultEnsembleSize"

# A namespace's own setting; the default (the largest of all brokers) has no namespace.
FOUND = f"""
with sizes as (
    select namespace, ensemble from persistence
    union all select null, max(try_cast(value as bigint)) from setting('{DEFAULT}')),
judged as (
    select namespace, ensemble, bookies, ensemble > bookies as too_large,
        bookies > 1 and ensemble > bookies - $information_spare_bookies as close
    from sizes cross join snapshot where ensemble is not null and bookies > 0)
select * from judged where too_large or close
"""
BOOKIES = f"""
select bookies, (select count(*) from setting('{DEFAULT}') where try_cast(value as bigint) is not null) as told
from snapshot
"""


def judge(answers: Answers, context: CheckContext[EnsembleTooLargePolicy]) -> Judgement:
    """A finding for each namespace with such an ensemble, and one for the brokers' default."""
    bookies, told = answers["bookies"].one["bookies"], answers["bookies"].one["told"]
    if not bookies:
        return Judgement(cannot_tell="The brokers did not tell which bookies there are.")
    found = answers["found"]
    if found.rows:
        cluster = context.about.cluster
        return Judgement(findings=tuple(_finding(row, cluster) for row in found.rows), more=found.more)
    if not told:
        return Judgement(cannot_tell=f"{DEFAULT} was not read of any broker.")
    return Judgement(quiet=f"No ensemble takes more bookies than it should: the cluster has {bookies:,}.")


def _finding(row: Row, cluster: str) -> Finding:
    ensemble, bookies = row["ensemble"], row["bookies"]
    of_all = row["namespace"] is None
    who = f"where a namespace sets nothing else ({DEFAULT})" if of_all else "by the namespace's own policy"
    words = f"Each ledger is spread over {counted(ensemble, 'bookie')} {who}, and the cluster has {bookies:,}: "
    if row["too_large"]:
        words += (
            "no new ledger can be made, so no topic can be loaded, and those that are loaded stop at their next one."
        )
    else:
        may = bookies - ensemble
        words += f"{'while one is' if not may else f'while {may + 1:,} are'} away, no new ledger can be made."
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["too_large"] else Severity.INFO,
        subject=cluster if of_all else row["namespace"],
        evidence=words,
        figures={"bookies": bookies, "ensemble": ensemble},
    )


CHECK = Check(
    check_id="ensemble-too-large",
    order=45,
    title="Ledgers are spread over as many bookies as there are, or more",
    advice=(
        "More than there are: lower it at once (pulsar-admin namespaces set-persistence -e E -w QW -a QA).",
        "Or bring missing bookies back: pulsar-admin bookies list-bookies names all that belong to the cluster.",
        "As many as there are: add a bookie, so that one may be away.",
        "What is written already stays where it is; only new ledgers follow the setting.",
    ),
    source="docs/knowledge.md C: ensembles (E, Qw, Qa) that do not fit the bookies",
    policy=EnsembleTooLargePolicy,
    cluster={
        "found": Question(FOUND, worst_first="too_large desc, ensemble desc, namespace"),
        "bookies": Question(BOOKIES),
    },
    judge=judge,
)
