"""Rate limits of a namespace under the name of a cluster that does not serve it: they limit nobody."""

from __future__ import annotations

from pulsar_steward.checks.check import Query, RowCheck, Scope, if_any
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import counted, named


class LimitElsewherePolicy(Section):
    """Thresholds for limits under another cluster's name."""

    minimum_limits: int = number(1, "under such names, of one namespace")


RATES = (
    "publishMaxMessageRate",
    "topicDispatchRate",
    "subscriptionDispatchRate",
    "replicatorDispatchRate",
    "clusterSubscribeRate",
)
"""Members of a namespace's policies with a limit for each cluster (apache/pulsar, `Policies`)."""

_HELD = " union all ".join(
    f"select namespace, serving, '{name}' as rate, unnest(json_keys(own->'{name}')) as cluster from known"
    for name in RATES
)

# A replicator's limit may stand under two clusters at once, as "here->there": the first is where it holds.
ELSEWHERE = f"""
with known as (
    select namespace, policies_json::json as own, list_concat(
        [pulsar_cluster], coalesce(try_cast(policies_json::json->'replication_clusters' as varchar[]), []),
        coalesce(try_cast(policies_json::json->'allowed_clusters' as varchar[]), [])) as serving
    from namespaces cross join (select pulsar_cluster from snapshot where pulsar_cluster is not null)
    where json_valid(policies_json) and not starts_with(namespace, 'pulsar/')),
held as ({_HELD})
select namespace, any_value(minimum_limits) as least, count(*) as amount, list_sort(list(rate)) as rates,
    list_sort(list_distinct(list(cluster))) as clusters, list_sort(list_distinct(flatten(list(serving)))) as serving
from held join limits using (namespace) where not list_contains(serving, split_part(cluster, '->', 1))
group by namespace having amount >= least
"""

LIMIT_ELSEWHERE = RowCheck(
    check_id="limit-elsewhere",
    order=125,
    title="A rate limit stands under a cluster that does not serve the namespace",
    advice=(
        "Ask the owner which limit is meant: what stands there may be far below what is published now.",
        "Then set it by the namespace's own call, which writes the right name: `pulsar-admin namespaces set-...-rate`.",
    ),
    source="docs/checks/limit-elsewhere.md; apache/pulsar#16709",
    scope=Scope.NAMESPACE,
    policy=LimitElsewherePolicy,
    cluster={
        "found": Query(ELSEWHERE, worst_first="amount desc, namespace"),
        "nameless": Query("select cluster from snapshot where pulsar_cluster is null"),
    },
    severity=Severity.WARNING,
    subject="namespace",
    evidence=lambda row: (
        f"{counted(row['amount'], 'limit')} of {row['namespace']} ({named(row['rates'])})"
        f" {'stands' if row['amount'] == 1 else 'stand'} under {named(row['clusters'])}, and it is served by"
        f" {named(row['serving'])} alone: nobody is limited, though the policy is there."
    ),
    figures=lambda row: {"limits": row["amount"]},
    missing=if_any("nameless", "Pulsar's own name of {names} is not in the snapshot."),
    quiet="No namespace's rate limits stand under a cluster that does not serve it.",
)
