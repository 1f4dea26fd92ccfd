"""What each check is about, in words: for the approval text, the reports and `explain`, none of which needs Spark."""

from __future__ import annotations

import msgspec


class CheckInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One check in words.

    Attributes:
        check_id: The id that findings carry.
        title: The trouble in a few words.
        advice: What to do about it, one step a line.
        source: Where this was learned.
        remedied_by: The planner that can propose a remedy; None where there is none.
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    remedied_by: str | None = None


TC_SKEW = CheckInfo(
    check_id="tc-skew",
    title="Transaction coordinators are unevenly spread over the brokers",
    advice=(
        "Move bundles of pulsar/system from the broker with the most coordinators to the one with the fewest.",
        "Balance the coordinators before business bundles, so that the two do not undo each other.",
        "Look at the spread after every restart and scale-out: brokers never move these bundles by themselves.",
    ),
    source="docs/knowledge.md A; apache/pulsar#22953",
    remedied_by="tc_balance",
)

BUNDLE_TOPIC_SKEW = CheckInfo(
    check_id="bundle-topic-skew",
    title="The topics of a namespace crowd in few of its bundles",
    advice=(
        "Split the crowded bundles by topic_count_equally_divide.",
        "Give the namespace more bundles from the start when thousands of topics are to be expected.",
    ),
    source="docs/knowledge.md C",
)

CHECKS: dict[str, CheckInfo] = {info.check_id: info for info in (TC_SKEW, BUNDLE_TOPIC_SKEW)}
"""Every check that exists, by id, in the order in which reports list them."""
