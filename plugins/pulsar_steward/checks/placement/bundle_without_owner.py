"""Bundles that do not load: nobody owns them, and their topics had clients when somebody last did.

A bundle is loaded within a second once a client asks for one of its topics, clients ask again and again, and no broker
gives a bundle up because it is idle. So one that nobody asks for differs from one that does not load by its past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question, Scope
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.checks.placement.lost_bundles import (
    CLIENTS_BEFORE,
    FOUND_BEFORE,
    IN_TURN,
    MAX_BUNDLES,
    OWNERS_BEFORE,
    WITHOUT_OWNER,
    BundleWithoutOwnerPolicy,
    lost_bundles,
)
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import Answers, CheckContext, Row
    from pulsar_steward.checks.placement.lost_bundles import LostBundle, LostBundles


def judge(answers: Answers, context: CheckContext[BundleWithoutOwnerPolicy]) -> Judgement:
    """A warning for a namespace, critical where isolation policies leave it no broker; the most clients first."""
    found = [
        each
        for each in lost_bundles(answers, context)
        if each.clients >= context.limits_of(each.namespace).warning_clients
    ]
    found.sort(key=lambda each: (not each.nowhere, -each.clients, each.namespace))
    if found:
        listed = frozenset(row["broker"] for row in answers["listed"].rows)
        least = "At least " if answers["without_owner"].more else ""
        findings = tuple(_finding(each, listed, least) for each in found[:MAX_FINDINGS])
        return Judgement(findings=findings, more=max(0, len(found) - MAX_FINDINGS))
    return Judgement(
        quiet="No bundle is without an owner that had clients when it last had one.",
        cannot_tell=nothing_read(answers["read"]) or _missing(answers, context),
    )


def _missing(answers: Answers, context: CheckContext[BundleWithoutOwnerPolicy]) -> str | None:
    """Reason why bundles without an owner prove nothing yet."""
    without = answers["without_owner"]
    have = counted(without.count, "bundle has", "bundles have")
    if without.rows and not context.about.earlier:
        return f"{have} no owner, and no earlier snapshot shows whether clients used them."
    if without.more:
        return f"{have} no owner; {MAX_BUNDLES:,} of them were looked up, and no client used these."
    return None


def _finding(found: LostBundles, listed: frozenset[str], least: str) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if found.nowhere else Severity.WARNING,
        subject=found.namespace,
        evidence=least + " ".join(_sentences(found, listed)),
        figures={
            "bundles": found.bundles,
            "bundles_of_namespace": found.row["bundles_of_namespace"],
            "clients": found.clients,
            "since_epoch_seconds": int(found.since.timestamp()),
            "topics": found.topics,
        },
    )


def _sentences(found: LostBundles, listed: frozenset[str]) -> Iterator[str]:
    worst, have, them = found.worst, *(("has", "it") if found.bundles == 1 else ("have", "them"))
    yield (
        f"{found.bundles:,} of {counted(found.row['bundles_of_namespace'], 'bundle')} {have} had no owner in any"
        f" snapshot since {time_in_words(found.since)}; before, {counted(found.clients, 'client')} used"
        f" {counted(found.topics, 'topic')} in {them}."
    )
    if worst is not None:
        yield (
            f"{worst.row['bundle']} was on {worst.owner} at {time_in_words(worst.owned_at)}, with"
            f" {counted(worst.topics, 'topic')} and {counted(worst.clients, 'client')}."
        )
    if found.nowhere:
        yield "Isolation policies leave the namespace no broker that is there: nobody can reach these topics."
        if worst is not None:
            yield _before_that(worst, listed)
    elif worst is not None:
        yield from _unclear(found.row, worst)


def _before_that(worst: LostBundle, listed: frozenset[str]) -> str:
    """The brokers that the namespace could be on when the bundle last had an owner, and whether they are there."""
    if worst.allowed_then is None:
        return f"At {time_in_words(worst.owned_at)} it could be on any broker."
    gone = "" if listed & set(worst.allowed_then) else ", of which none is listed any more"
    return f"At {time_in_words(worst.owned_at)} it could be on {named(sorted(worst.allowed_then)) or 'none'}{gone}."


def _unclear(row: Row, worst: LostBundle) -> Iterator[str]:
    if row["allowed_brokers"] is not None:
        yield f"Isolation policies leave it {named(sorted(row['allowed_brokers']))}."
    yield (
        "Either no broker loads what clients ask for, or these clients left between"
        f" {time_in_words(worst.owned_at, seconds=True)} and {time_in_words(worst.since, seconds=True)}, when the"
        " owner did: both look the same in snapshots."
    )


CHECK = Check(
    check_id="bundle-without-owner",
    order=55,
    title="Bundles that clients used have no owner: they do not load",
    advice=(
        "Ask for one of the topics, and read the answer: `pulsar-admin topics lookup TOPIC` loads what can be loaded.",
        "See which brokers may have the namespace: `pulsar-admin ns-isolation-policy list CLUSTER`.",
        "A policy keeps its primary brokers from all other namespaces, too: with all brokers in it, these have none.",
        "Start the brokers of its group, or give its policy secondary brokers, or take a mistaken policy back.",
        "Else read the logs of the leader and of the last owner (`steward checkup --logs`) for the bundle's name.",
        "Clients that were switched off are well: the finding ends with the snapshots that still show them.",
    ),
    source="docs/knowledge.md F; docs/checks/bundle-without-owner.md",
    scope=Scope.NAMESPACE,
    policy=BundleWithoutOwnerPolicy,
    shards={"without_owner": Question(WITHOUT_OWNER, worst_first=IN_TURN, most=MAX_BUNDLES, small=True)},
    earlier={
        "owners_before": looking_back(OWNERS_BEFORE, small=True),
        "clients_before": looking_back(CLIENTS_BEFORE),
        "found_before": looking_back(FOUND_BEFORE, small=True),
    },
    cluster={"read": BROKERS_READ, "listed": Question("select broker from brokers")},
    judge=judge,
)
