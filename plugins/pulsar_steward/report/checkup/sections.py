"""Section of the guide that a check belongs to."""

from __future__ import annotations

from pulsar_steward.checks.registry import GROUPS
from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.logs.patterns import SECTION as LOGS

OTHER = "Other checks"
"""Section of a check that this version does not know: the snapshot was diagnosed by another one."""

_SECTION_OF = {check.check_id: group.title for group in GROUPS for check in group.checks} | dict.fromkeys(
    LOG_CHECKS, LOGS
)


def section_of(check_id: str) -> str:
    """Section of the guide that a check belongs to."""
    return _SECTION_OF.get(check_id, OTHER)
