"""A check under a policy of which tenants or namespaces set thresholds apart: one judgement for each set of values.

Only checks that look at one namespace at a time can be told so (`Scope.NAMESPACE`); where nobody sets anything apart
for one, there is one judgement, of the snapshot as it is.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog import Scope
from pulsar_steward.model.tables import METRICS
from pulsar_steward.policy.division import divided
from steward_spark.checks.check import MOST_FINDINGS, Judgement
from steward_spark.checks.common.topics import namespace_of
from steward_spark.checks.common.worst import named
from steward_spark.frames import Frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.division import Division
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Check
    from steward_spark.frames import About


def judge(check: Check, frames: Frames, policy: Policy) -> Judgement:
    """What a check says of a snapshot, each namespace judged by the values in force for it.

    Args:
        check: The check.
        frames: The snapshot.
        policy: Thresholds and limits, those of single clusters, tenants and namespaces among them.
    """
    own = policy.for_cluster(frames.about.cluster) if policy.clusters else policy
    if check.info.scope is not Scope.NAMESPACE:
        return check.judge(frames, own)
    division = divided(own, check.info.sections)
    if len(division.policies) == 1:
        return check.judge(frames, own)
    judgements = [check.judge(_part(frames, division, part), each) for part, each in enumerate(division.policies)]
    return merged(judgements, [division.names(part) for part in range(len(judgements))])


def _part(frames: Frames, division: Division, part: int) -> PartOfFrames:
    """The same for all checks that divide the namespaces so, as what they derive of it is kept with it."""
    key = (part, *(tuple(sorted(names.items())) for names in (division.tenants, division.namespaces)))
    return frames.once(key, lambda: PartOfFrames(frames, division, part))


class PartOfFrames(Frames):
    """A snapshot, and earlier ones, as if it had only the namespaces of one part; brokers and settings are all there.

    Args:
        whole: The snapshot.
        division: What parts there are.
        part: Which of them.
    """

    def __init__(self, whole: Frames, division: Division, part: int) -> None:
        earlier = [PartOfFrames(each, division, part) for each in whole.earlier]
        super().__init__(self._read_part, earlier, whole.hold)
        self._whole, self._division, self._part = whole, division, part

    @cached_property
    def about(self) -> About:
        """What the snapshot is: the same for all its parts."""
        return self._whole.about

    def _read_part(self, table: Table) -> DataFrame:
        frame = self._whole.read(table)
        if table == METRICS:
            theirs = part_of(namespace_of("topic"), self._division) != self._part
            return without_topics(frame, theirs)
        if "namespace" in frame.columns:
            return frame.where(part_of(F.col("namespace"), self._division) == self._part)
        return frame


def part_of(namespace: Column, division: Division) -> Column:
    """As `Division.part_of`; 0 where the namespace is null."""
    tenant = F.substring_index(namespace, "/", 1)
    found = F.lit(0)
    for key, parts in ((tenant, division.tenants), (namespace, division.namespaces)):
        for part in sorted(set(parts.values())):
            found = F.when(key.isin([name for name, each in parts.items() if each == part]), part).otherwise(found)
    return found


def without_topics(samples: DataFrame, theirs: Column) -> DataFrame:
    """Samples, some of them without what they say of a topic.

    They stay as samples at rest: that a source tells a series at all is how a check knows that silence is none.

    Args:
        samples: The table `metrics`.
        theirs: Which of them; what it says of samples of no topic is passed over.
    """
    silent = theirs & F.col("topic").isNotNull()
    blank = {name: F.when(~silent, F.col(name)) for name in ("topic", "subscription", "labels_json")}
    return samples.withColumns(blank | {"value": F.when(silent, 0.0).otherwise(F.col("value"))})


def merged(judgements: Sequence[Judgement], names: Sequence[Sequence[str]]) -> Judgement:
    """Judgements of the parts of a snapshot as one.

    Args:
        judgements: One a part, each with its worst findings first.
        names: The tenants and namespaces that are named for each part.

    Returns:
        The worst findings first, of equal severity the first ones of each part before its next ones.
    """
    placed = [(place, finding) for each in judgements for place, finding in enumerate(each.findings)]
    placed.sort(key=lambda pair: (-pair[1].severity.rank, pair[0]))
    findings = [finding for _, finding in placed]
    unknown = [each.cannot_tell for each in judgements]
    return Judgement(
        findings=tuple(findings[:MOST_FINDINGS]),
        more=sum(each.more for each in judgements) + max(len(findings) - MOST_FINDINGS, 0),
        quiet=_joined([each.quiet for each in judgements], names) or Judgement.quiet,
        cannot_tell=None if findings else _joined(unknown, names),
    )


def _joined(sentences: Sequence[str | None], names: Sequence[Sequence[str]]) -> str | None:
    """Each sentence once, with whom it is about where it is not about the rest of the cluster."""
    said: dict[str, str] = {}
    for sentence, whose in zip(sentences, names, strict=True):
        if sentence is not None:
            said.setdefault(sentence, f"In {named(whose)}: {sentence}" if whose else sentence)
    return " ".join(said.values()) or None
