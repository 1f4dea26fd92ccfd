"""Settings that should be equal on all brokers of a cluster, but differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, brokers_of, grouped
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.setting import OF_BALANCING, OF_MACHINES, OF_TOPICS, SHARED, TOGETHER
from pulsar_steward.model.units import counted, named, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class BrokerSettingsDifferPolicy(Section):
    """Window that tells a broker-by-broker change from a lasting difference."""

    window_minutes: int = number(60, "a difference that began within these is information: a change may be under way")


KINDS = (
    (TOGETHER, Severity.CRITICAL, "brokers decide together by it, or all of them have to keep it"),
    (OF_TOPICS, Severity.WARNING, "what a topic gets changes as it moves to another broker"),
    (OF_BALANCING, Severity.WARNING, "how load is balanced changes as another broker leads"),
    (OF_MACHINES, Severity.INFO, "meant, if the machines differ"),
)
"""Kinds of settings, with the severity of a difference, and the reason."""

_KEYS = f"key in ({', '.join(repr(key) for key in SHARED)})"

# Brokers beyond the number that a sentence names are only counted.
VALUES = f"""
with told as (
    select key, trim(value) as value, broker, coalesce(pulsar_version, '') as version
    from configuration join brokers using (broker) where {_KEYS} and value is not null),
differing as (select key from told group by key having count(distinct value) > 1)
select key, value, count(*) as brokers, list(broker order by broker)[:6] as names,
    list(distinct version order by version) as versions
from told semi join differing using (key) group by key, value
"""

EQUAL_BEFORE = f"""
select key, min(trim(value)) as value, list(broker order by broker) as brokers from configuration
where {_KEYS} and value is not null group by key having count(distinct trim(value)) = 1
"""
"""Settings with a single value in an earlier snapshot, with the brokers that reported it."""

# A broker with another value now, that did not report it then, may have had it all along.
CHANGED = f"""
with unknown as (
    select key, taken_at from equal_before join configuration now using (key)
    where {_KEYS} and trim(now.value) <> equal_before.value and not list_contains(brokers, now.broker))
select key, max(taken_at) as taken_at from equal_before anti join unknown using (key, taken_at) group by key
"""
"""Time of the newest earlier snapshot in which all brokers that now differ had the same value, by setting."""

UNREAD = f"""
select broker from brokers anti join (select broker from configuration where {_KEYS}) using (broker) where read
"""
TOLD = f"select count(distinct broker) as brokers from configuration where {_KEYS}"

MAX_VALUES = 3
"""Maximum number of values that a sentence names besides the usual one."""


def judge(queried: Queried, _context: CheckContext[BrokerSettingsDifferPolicy]) -> Judgement:
    """A finding for each such setting, the worst kind first; information for a change under way or between versions."""
    equal = {row["key"]: row["taken_at"] for row in queried["changed"].rows}
    found = []
    for (key,), rows in grouped(queried["values"].rows, "key").items():
        severity, why = next((severity, why) for keys, severity, why in KINDS if key in keys)
        usual, *others = sorted(rows, key=lambda row: (-row["brokers"], row["value"]))
        versions = [version for row in rows for version in row["versions"]]
        if key in equal:
            severity = Severity.INFO
            why = f"all had the same in the snapshot of {time_in_words(equal[key])}, so a change may be under way"
        elif len(versions) == len(set(versions)) > 1:  # the brokers of each version agree
            severity = Severity.INFO
            why = "each version has its own, as its default may have changed"
        words = f"{key} is {usual['value'] or 'empty'} on {counted(usual['brokers'], 'broker')}"
        for row in others[:MAX_VALUES]:
            unnamed = row["brokers"] - len(row["names"])  # `VALUES` only counts the rest
            words += f", {row['value'] or 'empty'} on {named([*row['names'], *[''] * unnamed])}"
        if (left := len(others) - MAX_VALUES) > 0:
            words += f", and {counted(left, 'further value', 'further values')}"
        figures = {
            "brokers": sum(row["brokers"] for row in rows),
            "brokers_with_another_value": sum(row["brokers"] for row in others),
            "values": len(rows),
        }
        found.append(CHECK.finding(severity=severity, subject=key, evidence=f"{words}: {why}.", figures=figures))
    found.sort(key=lambda finding: SHARED.index(finding.subject))
    told, unread = queried["told"].one["brokers"], brokers_of(queried["unread"])
    no_settings = None if told else "No settings were read of any broker."
    return Judgement(
        findings=tuple(found),
        quiet=f"{counted(told, 'broker tells', 'brokers tell')} the same of {counted(len(SHARED), 'setting')}.",
        cannot_tell=f"The settings of {named(unread)} were not read." if unread else no_settings,
    )


CHECK = Check(
    check_id="broker-settings-differ",
    order=85,
    title="Brokers of one cluster have different settings",
    advice=(
        "Compare: `pulsar-admin brokers get-runtime-config` of each; what was changed at run time is in all of them.",
        "Have one source for `broker.conf` (a chart, a repository), and restart the brokers that differ one by one.",
        "What was set with `pulsar-admin brokers update-dynamic-config` holds for all: remove it where it was for one.",
        "During an upgrade: finish it; where versions have other defaults, write the value down in `broker.conf`.",
    ),
    source="docs/knowledge.md C: brokers of one cluster that are configured differently",
    policy=BrokerSettingsDifferPolicy,
    earlier={"equal_before": looking_back(EQUAL_BEFORE, small=True)},
    cluster={"values": Query(VALUES), "changed": Query(CHANGED), "unread": Query(UNREAD), "told": Query(TOLD)},
    judge=judge,
)
