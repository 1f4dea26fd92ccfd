"""Runs checks on a snapshot: first their queries, then their judgement of the rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import CheckContext, JudgedRows, Judgement, Scope
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.diagnose.queries import QuerySet
from pulsar_steward.diagnose.running import QueryFailed, SnapshotSources, about_of, ask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pulsar_steward.checks.check import AboutSnapshot, Check, Queried
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.model.system import System
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.runtime.parallel import MapOver


@dataclass(frozen=True)
class Division:
    """Parts of a cluster's namespaces, each with one policy.

    Attributes:
        policies: The policy of each part. The first applies to everything not in `tenants` or `namespaces`.
        tenants: Number of the part of a tenant's namespaces.
        namespaces: Number of the part of a single namespace (``tenant/namespace``); it takes precedence over its
            tenant's.
    """

    policies: tuple[Policy, ...]
    tenants: dict[str, int]
    namespaces: dict[str, int]

    def part_of(self, namespace: str) -> int:
        """Part of a namespace."""
        tenant = namespace.partition("/")[0]
        return self.namespaces.get(namespace, self.tenants.get(tenant, 0))

    def names(self, part: int) -> list[str]:
        """Tenants and namespaces that belong to a part by name."""
        return [name for names in (self.tenants, self.namespaces) for name, each in names.items() if each == part]


def divided(policy: Policy, sections: Collection[str]) -> Division:
    """Divides the namespaces of a cluster by the values of these sections; namespaces with equal values form one part.

    Args:
        policy: The cluster's policy.
        sections: The sections that a check reads.
    """
    parts = {_key(policy, sections): (0, policy)}

    def part_of(name: str) -> int:
        own = policy.for_namespace(name)
        return parts.setdefault(_key(own, sections), (len(parts), own))[0]

    tenants = {name: part_of(name) for name in _set_apart(policy.tenants.items(), sections)}
    namespaces = {name: part_of(name) for name in _set_apart(policy.namespaces.items(), sections)}
    return Division(tuple(own for _, own in parts.values()), tenants, namespaces)


def _set_apart(layers: Iterable[tuple[str, Collection[str]]], sections: Collection[str]) -> list[str]:
    return sorted(name for name, overridden in layers if not set(sections).isdisjoint(overridden))


def _key(policy: Policy, sections: Collection[str]) -> tuple[str, ...]:
    return tuple(getattr(policy, section).model_dump_json() for section in sections)


__all__ = [
    "CheckResult",
    "SnapshotSources",
    "fitting",
    "judged",
    "query_sets_of",
    "run_checks",
    "with_those_they_rest_on",
]

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
    snapshot: SnapshotSources, policy: Policy, checks: Sequence[Check], views: Sequence[SqlView], map_over: MapOver
) -> list[CheckResult]:
    """Runs checks on a snapshot; a check that fails does not affect the others.

    Args:
        snapshot: Sources of its rows.
        policy: The cluster's policy.
        checks: The checks.
        views: Views for their queries, besides `pulsar_steward.checks.views`.
        map_over: Runs the queries on shards.
    """
    about = about_of(snapshot)
    checks = fitting(checks, about.system)
    query_sets = query_sets_of(checks, about, policy)
    return judged(checks, query_sets, ask(snapshot, query_sets, views, map_over))


def fitting(checks: Sequence[Check], system: System) -> list[Check]:
    """Checks for a system's snapshots."""
    return [check for check in checks if check.system is system]


def query_sets_of(checks: Sequence[Check], about: AboutSnapshot, policy: Policy) -> list[QuerySet]:
    """Queries of checks and of the checks that they depend on, each check once, with the limits in force for it."""
    own = policy.for_cluster(about.cluster) if policy.clusters else policy
    query_sets = []
    for check in with_those_they_rest_on(checks):
        parts: tuple[tuple[Any, tuple[str, ...]], ...] = ()
        if check.scope is Scope.NAMESPACE:
            division = divided(own, check.sections)
            numbered = enumerate(division.policies) if len(division.policies) > 1 else ()
            parts = tuple((getattr(each, check.section), tuple(division.names(number))) for number, each in numbered)
        context = CheckContext(about=about, policy=own, limits=getattr(own, check.section), parts=parts)
        query_sets.append(QuerySet(check.check_id, check, context))
    return query_sets


def with_those_they_rest_on(checks: Sequence[Check]) -> list[Check]:
    """All checks, including those that they depend on, which come first."""
    given = {check.check_id: check for check in checks}
    needed = [given.get(name) or BY_ID[name] for check in checks for name in check.rests_on]
    return list({check.check_id: check for check in (*needed, *checks)}.values())


def judged(
    checks: Sequence[Check], query_sets: Sequence[QuerySet], queried: Mapping[str, Queried | QueryFailed]
) -> list[CheckResult]:
    """Judgements of checks on the rows of their queries; "cannot tell" for a check that fails.

    Args:
        checks: The checks.
        query_sets: Their askers, from `query_sets_of`.
        queried: Results by check, at least for these checks.
    """
    contexts = {query_set.name: query_set.context for query_set in query_sets}
    results: dict[str, JudgedRows] = {}
    for check in with_those_they_rest_on(checks):
        context = replace(contexts[check.check_id], results={name: results[name] for name in check.rests_on})
        given = queried[check.check_id]
        judgement = _judgement_of(check, given, context)
        results[check.check_id] = JudgedRows(judgement, {} if isinstance(given, QueryFailed) else given)
    return [CheckResult(check, results[check.check_id].judgement) for check in checks]


def _judgement_of(check: Check, queried: Queried | QueryFailed, context: CheckContext[Any]) -> Judgement:
    if isinstance(queried, QueryFailed):
        return _broken(str(queried))
    try:
        return check.judge(queried, context)
    except Exception as error:
        log.exception("%s is broken on this snapshot", check.check_id)
        first_line = str(error).partition("\n")[0]
        return _broken(f"{type(error).__name__}: {first_line}")


def _broken(words: str) -> Judgement:
    return Judgement(cannot_tell=f"The check itself failed, which is a defect: {words}", broke=True)
