"""Topics of a namespace that are concentrated in few of its bundles: a bundle is the unit that a broker loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query, Scope
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class BundleTopicSkewPolicy(Section):
    """Thresholds for namespaces with most topics in a few bundles."""

    minimum_topics: int = Field(100, ge=1, description="namespaces with fewer topics are left alone")
    warning_times_mean: int = Field(
        3,
        ge=2,
        description="topics in the fullest bundle, as a multiple of the mean; where a namespace has four bundles or"
        " fewer, of the mean of the others: none can have more than four times the mean of all",
    )
    minimum_bundle_topics: int = Field(
        50, ge=1, description="topics in the fullest bundle; fewer are no crowd, whatever the others have by chance"
    )
    warning_topics_per_bundle: int = Field(1000, ge=1, description="topics in one bundle that are too many anywhere")


FEW_BUNDLES = 4
"""Number of bundles that namespaces have by default."""

# Bundles that an unread broker may own are left out. The mean is used only if all bundles are known, or it would be too
# low; a bundle that is too full by itself is reported in any case. With few bundles, it is the mean of the others. At a
# tie the lowest bundle is named: ranges have leading zeros, so text sorts correctly. A namespace that could not be read
# still has bundles, and the cluster's thresholds.
FOUND = f"""
with crowds as (
    select namespace, count(*) as bundles, sum(topics)::bigint as topics, bool_and(owner_known) as whole,
        first(bundle order by topics desc, bundle) as bundle, max(topics) as most
    from bundles group by namespace)
select namespace, bundle, bundles, topics, most
from crowds left join limits using (namespace)
where topics >= coalesce(minimum_topics, $minimum_topics)
    and (most >= coalesce(warning_topics_per_bundle, $warning_topics_per_bundle)
        or (whole and bundles > 1 and most >= coalesce(minimum_bundle_topics, $minimum_bundle_topics)
            and if(bundles <= {FEW_BUNDLES}, most * (bundles - 1), most * bundles)
                >= coalesce(warning_times_mean, $warning_times_mean)
                    * if(bundles <= {FEW_BUNDLES}, topics - most, topics)))
"""


def judge(queried: Queried, _: CheckContext[BundleTopicSkewPolicy]) -> Judgement:
    """A warning for each such namespace; the ones with the fullest bundles are listed, in order of their names."""
    found = queried["found"]
    return Judgement(
        findings=tuple(_finding(row) for row in sorted(found.rows, key=lambda row: str(row["namespace"]))),
        more=found.more,
        quiet="In no namespace do the topics crowd in few bundles.",
    )


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"Bundle {row['bundle']} holds {row['most']:,} of {counted(row['topics'], 'topic')}"
            f" in {row['bundles']:,} bundle{_mean_words(row)}."
        ),
        figures={"bundles": row["bundles"], "most_topics": row["most"], "topics": row["topics"]},
    )


def _mean_words(row: Row) -> str:
    """Text about the mean that the bundle is compared with; empty for a single bundle."""
    bundles, topics = row["bundles"], row["topics"]
    if bundles == 1:
        return ""
    if bundles <= FEW_BUNDLES:
        return f"s; the mean of the others is {(topics - row['most']) / (bundles - 1):,.1f}"
    return f"s; the mean is {topics / bundles:,.1f}"


CHECK = Check(
    check_id="bundle-topic-skew",
    order=20,
    title="The topics of a namespace crowd in few of its bundles",
    advice=(
        "Split the crowded bundles by topic_count_equally_divide.",
        "Give the namespace more bundles from the start when thousands of topics are to be expected.",
    ),
    source="docs/knowledge.md C",
    scope=Scope.NAMESPACE,
    remedied_by="bundle_split",
    policy=BundleTopicSkewPolicy,
    cluster={"found": Query(FOUND, worst_first="most desc, namespace")},
    judge=judge,
)
