"""What each check is about, in words: for approvals, reports and `explain`, none of which needs Spark.

The order is that of the guide for a cluster in trouble: resources, then clients and their acknowledgements, then where
things are, then backlog and retention, then delayed messages and capacity (docs/knowledge.md C).
"""

from pulsar_steward.model.catalog import backlog, clients, delayed, placement, resources
from pulsar_steward.model.catalog.info import CheckInfo, Scope

__all__ = ["CHECKS", "CheckInfo", "Scope"]

CHECKS: dict[str, CheckInfo] = {
    info.check_id: info for group in (resources, clients, placement, backlog, delayed) for info in group.CHECKS
}
"""Every check that exists, by id, in the order in which reports list them."""
