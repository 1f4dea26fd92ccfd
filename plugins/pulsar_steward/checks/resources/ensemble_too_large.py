"""Ledgers with a larger ensemble than there are bookies: none can be created, and writes to topics fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


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
select coalesce(bookies, 0) as bookies,
    (select count(*) from setting('{DEFAULT}') where try_cast(value as bigint) is not null) as told
from snapshot
"""


def _missing(queried: Queried, _context: CheckContext[EnsembleTooLargePolicy]) -> str | None:
    if not queried["bookies"].one["bookies"]:
        return "The brokers did not tell which bookies there are."
    return None if queried["bookies"].one["told"] else f"{DEFAULT} was not read of any broker."


def _evidence(row: Row) -> str:
    ensemble, bookies = row["ensemble"], row["bookies"]
    who = (
        f"where a namespace sets nothing else ({DEFAULT})"
        if row["namespace"] is None
        else "by the namespace's own policy"
    )
    words = f"Each ledger is spread over {counted(ensemble, 'bookie')} {who}, and the cluster has {bookies:,}: "
    if row["too_large"]:
        words += (
            "no new ledger can be made, so no topic can be loaded, and those that are loaded stop at their next one."
        )
    else:
        may = bookies - ensemble
        words += f"{'while one is' if not may else f'while {may + 1:,} are'} away, no new ledger can be made."
    return words


# A finding for each namespace with such an ensemble, and one for the brokers' default.
CHECK = RowCheck(
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
        "found": Query(FOUND, worst_first="too_large desc, ensemble desc, namespace"),
        "bookies": Query(BOOKIES),
    },
    severity=lambda row: Severity.CRITICAL if row["too_large"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=("bookies", "ensemble"),
    missing=_missing,
    quiet=lambda queried, _context: (
        f"No ensemble takes more bookies than it should: the cluster has {queried['bookies'].one['bookies']:,}."
    ),
)
