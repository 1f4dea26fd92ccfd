"""Groups of brokers that Steward's policy asks for: isolation policies that differ, and bundles outside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.decoding import decode
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.isolation import isolation_policies, policies_in_words
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.isolation import IsolationPolicy


class BrokerGroupsPolicy(Section):
    """Nothing of its own: the groups are `brokers.groups`."""


# Bundles with a loaded topic, or a coordinator, on brokers that the policies of the cluster do not leave to them.
OUTSIDE = """
with held as (select bundle from transaction_coordinators)
select namespace, count(*) as outside
from bundles join namespaces using (namespace)
where owner is not null and allowed_brokers is not null and not list_contains(allowed_brokers, owner)
    and (coalesce(topics, 0) > 0 or (namespace = 'pulsar/system' and bundle in (select bundle from held)))
group by namespace
"""


def judge(queried: Queried, context: CheckContext[BrokerGroupsPolicy]) -> Judgement:
    """A warning for each group whose isolation policy differs from the wanted one, or that has bundles outside."""
    groups = context.policy.brokers.groups
    if not groups:
        return Judgement(quiet="No groups of brokers are wanted (policy key brokers.groups).")
    (about,) = queried["policies"].rows
    if about["isolation_json"] is None:
        return Judgement(cannot_tell="The isolation policies could not be read.")
    known = isolation_policies(decode(about["isolation_json"], dict[str, object]))
    rows = queried["outside"].rows
    found = [_finding(group.name, group.isolation, known.get(group.name), rows) for group in groups]
    return Judgement(
        findings=tuple(each for each in found if each is not None),
        quiet=f"{counted(len(groups), 'group')} of brokers: policies are as wanted, and no bundle is outside.",
    )


def _finding(
    name: str, wanted: IsolationPolicy, present: IsolationPolicy | None, rows: Sequence[Row]
) -> Finding | None:
    outside = [row for row in rows if wanted.claims(row["namespace"])]
    bundles = sum(row["outside"] for row in outside)
    as_wanted = wanted.is_as(present)
    if as_wanted and not outside:
        return None
    now, then = policies_in_words(present, wanted)
    words = f"The isolation policy {name} is {now}; wanted is {then}."
    if as_wanted:
        few = counted(bundles, "bundle is", "bundles are")
        words = f"{few} outside of the group {name}, of {outside[0]['namespace']} among others: a policy moves nothing."
    return CHECK.finding(
        severity=Severity.WARNING,
        subject=name,
        evidence=words,
        figures={"as_wanted": int(as_wanted), "bundles_outside": bundles},
    )


CHECK = Check(
    check_id="broker-groups",
    order=36,
    title="A group of brokers is not as the policy wants it, or bundles of its namespaces are outside of it",
    advice=(
        "Have the policy set and the bundles moved in a batch that somebody approves (remediation broker_group).",
        "By hand: `pulsar-admin ns-isolation-policy set --unload-scope none ...`, then unload bundle by bundle.",
        "Without the scope brokers before 4.0 unload every namespace of the policy at once.",
    ),
    source="docs/remediations/broker-groups.md; docs/knowledge.md E",
    remedied_by="broker_group",
    policy=BrokerGroupsPolicy,
    cluster={
        "policies": Query("select isolation_json from snapshot"),
        "outside": Query(OUTSIDE, worst_first="outside desc, namespace"),
    },
    judge=judge,
)
