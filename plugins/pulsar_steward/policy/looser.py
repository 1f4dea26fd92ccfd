"""Comparison of two policies: no change runs under a looser policy than it was planned and approved under.

`LOOSER` defines, for each key that limits a change, the direction in which it gets looser. Keys that only set how
something is done (for example how long to wait) are in `NEUTRAL`, each with its reason. A test checks that every key of
these sections is in one of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.plan import KINDS, ROLLBACK
from pulsar_steward.model.risk import Risk
from pulsar_steward.policy.approval import UNLIMITED, ApprovalValues, Terms
from pulsar_steward.policy.names import naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pulsar_steward.policy.recorded import RecordedPolicy
    from pulsar_steward.policy.schema import Policy


def _higher(now: Any, then: Any) -> bool:
    return bool(now > then)


def _lower(now: Any, then: Any) -> bool:
    return bool(now < then)


def _fewer(now: Any, then: Any) -> bool:
    """True if an item is no longer on a list of protected items."""
    return not set(now) >= set(then)


def _less_protected(now: Any, then: Any) -> bool:
    """True if a name or pattern is no longer protected, neither by itself nor by a pattern."""
    return any(naming(each, now) is None for each in then)


def _longer_windows(now: Any, then: Any) -> bool:
    """True if a new time is permitted: windows open at other times, or stay open longer."""

    def covers(former: Any, window: Any) -> bool:
        same = (former["opens"], former["time_zone"]) == (window["opens"], window["time_zone"])
        return bool(same and former["minutes"] >= window["minutes"])

    return bool(then) and not (now and all(any(covers(former, window) for former in then) for window in now))


def _fewer_bookies(now: Any, then: Any) -> bool:
    """True if the policy no longer collects the metrics of a bookie."""
    return _fewer(*([each for each in urls if each.startswith("bookie=")] for urls in (now, then)))


def _fewer_together(now: Any, then: Any) -> bool:
    """True if two clusters are no longer members of one logical cluster."""
    logical = [{name.casefold() for name in (each["primary"], *each["extensions"])} for each in now.values()]
    former = ({name.casefold() for name in (each["primary"], *each["extensions"])} for each in then.values())
    return any(len(members) > 1 and not any(members <= each for each in logical) for members in former)


LOOSER: Mapping[str, Callable[[Any, Any], bool]] = {
    "approval.valid_minutes": _higher,
    "approval.wait_for_window_minutes": _higher,
    "approval.two_people_for": _fewer,
    "approval.requester_may_approve": _higher,
    "apply.bundle_moves_per_minute": _higher,
    "apply.reconnecting_clients_per_minute": _higher,
    "apply.most_clients_per_step": _higher,
    "apply.intent_valid_seconds": _higher,
    "apply.members_at_once": _higher,
    "apply.protected_namespaces": _less_protected,
    "backlog_quota_remedy.room_percent": _lower,
    "brokers.draining": _fewer,
    "cluster_placement.warning_cpu_percent_after_loss": _higher,
    "collect.metrics_urls": _fewer_bookies,
    "logical_clusters.named": _fewer_together,
    "partition_ceiling.critical_topics_per_broker": _higher,
    "guards.quota_margin_percent": _lower,
    "guards.most_redelivered_messages": _higher,
    "guards.largest_batch_messages": _lower,
    "guards.most_delayed_index_megabytes": _higher,
    "guards.most_clock_difference_seconds": _higher,
    "guards.snapshot_valid_minutes": _higher,
    "guards.circle_minutes": _lower,
    "guards.most_coordinators": _higher,
    "guards.coordinators_rest_minutes": _lower,
    "guards.least_brokers": _lower,
    "guards.most_partitions": _higher,
    "guards.fewer_copies": _higher,
    "guards.most_changes_per_run": _higher,
    "guards.most_changes_per_hour": _higher,
    "guards.versions_tried_here": lambda now, then: not set(now) <= set(then),
    "guards.windows": _longer_windows,
    "health.watched_topics": _lower,
    "health.return_seconds": _higher,
    "health.most_missing_clients_percent": _higher,
    "health.most_backlog_growth_percent": _higher,
    "health.backlog_floor_messages": _higher,
    "health.most_publish_milliseconds": _higher,
    "subscriptions.delete_abandoned": _higher,
    "subscriptions.minimum_days": _lower,
    "subscriptions.protected_topics": _less_protected,
    "subscriptions.protected_subscriptions": _less_protected,
    "tc_skew.cooldown_minutes": _lower,
}
"""Comparison for each key: True if a value is looser than another one; both as in a policy's JSON."""

NEUTRAL: Mapping[str, str] = {
    "brokers.groups": "a step sets exactly the group that was planned, and none that is no longer wanted so",
    "approval.response_timeout_minutes": "it is over once somebody answered",
    "approval.ask_again_minutes": "says when is asked, not what is done",
    "approval.never_ask": "says what is asked, not what is done",
    "approval.decide_by": "says what is asked together; each step is approved all the same",
    "approval.decide_by_kind": "as `approval.decide_by`",
    "approval.most_steps": "as `approval.decide_by`",
    "subscriptions.growth_percent": "the plan says how much may be lost, and no more is",
    "subscriptions.most_steps_per_plan": "says how much is asked, not what is done",
    "apply.proof_timeout_seconds": "how long the cluster is looked at after a call",
    "apply.proof_wait_seconds": "how long is waited before a batch begins",
    "apply.lease_seconds": "how long a dead writer keeps others away",
    "apply.lease_wait_seconds": "how long is waited before a batch begins",
}
"""Keys of the same sections that permit nothing, whatever their value, each with the reason."""

USERS = ("approval.assigned_users", "approval.assigned_users_by_kind")
"""Keys that, together with `TERMS`, set who may answer for a kind of batch; compared by kind and risk."""

TERMS = ("approval.by_risk",)
"""Keys that set the requirements of an approval by risk; compared level by level."""

SECTIONS = ("approval", "apply", "guards", "health", "brokers", "subscriptions")
"""Sections whose keys all have to be in `LOOSER`, `NEUTRAL`, `USERS` or `TERMS`."""


def loosened(policy: Policy, then: RecordedPolicy) -> tuple[str, ...]:
    """Keys for which a policy is looser than an earlier one, each with both values, as text.

    Args:
        policy: The policy in force.
        then: The earlier policy; a missing key limited nothing.
    """
    compared: dict[str, set[str]] = {}
    for name in LOOSER:
        section, _, key = name.partition(".")
        compared.setdefault(section, set()).add(key)
    now = {name: getattr(policy, name).model_dump(mode="json", include=keys) for name, keys in compared.items()}
    found = []
    for name, is_looser in LOOSER.items():
        section, _, key = name.partition(".")
        was = then.sections.get(section, {})
        if key in was and is_looser(now[section][key], was[key]):
            found.append(f"{name} is {_written(now[section][key])}, and was {_written(was[key])}")
    approval, former = policy.approval.values, then.approval
    if approval == former:  # as nearly always, and each of the comparisons below takes every kind at every risk
        return tuple(found)
    alone, back = [(kind,) for kind in KINDS], [(ROLLBACK, kind) for kind in KINDS if kind != ROLLBACK]
    users = [words for rules in alone for words in _looser_users(rules, approval, former)]
    found += users or [words for rules in back for words in _looser_users(rules, approval, former)]
    found += [words for level in Risk for words in _looser_by_risk(level, approval, former)]
    return tuple(filter(None, found))


def _looser_users(kinds: tuple[str, ...], approval: ApprovalValues, was: ApprovalValues) -> list[str]:
    """Words on users who may newly answer for batches under the rules of these kinds; empty: there are none."""
    found = []
    for level in Risk:
        now, then = (values.terms(kinds, level).users for values in (approval, was))
        if then is not None and (now is None or not now <= then):
            may = f"{'everyone' if now is None else sorted(now)} may answer to {' of a '.join(kinds)}"
            found.append(f"{may}, and only {sorted(then)} might ({' or '.join(USERS)}, {TERMS[0]})")
    return list(dict.fromkeys(found))


def _looser_by_risk(level: Risk, approval: ApprovalValues, was: ApprovalValues) -> Iterator[str]:
    """Requirements for all batches of a level that are lower than before."""
    now, then = (ApprovalValues(by_risk=values.by_risk).terms((), level) for values in (approval, was))
    name = f"{TERMS[0]}: of {level} risk"
    if now.people < then.people:
        yield f"{name} {now.people} has to approve, and {then.people} had to"
    if now.valid_minutes > then.valid_minutes:
        yield f"{name} an approval counts {_minutes(now)}, and did {_minutes(then)}"
    if now.requester_may_approve and not then.requester_may_approve:
        yield f"{name} who started the run may approve, and might not"


def _minutes(terms: Terms) -> str:
    return "as long as others" if terms.valid_minutes == UNLIMITED else f"{terms.valid_minutes} minutes"


def _written(value: object) -> str:
    return "none" if value in ([], {}, ()) else str(value)
