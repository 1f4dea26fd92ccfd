"""The part of the guide that a check belongs to."""

from __future__ import annotations

from pulsar_steward.checks.registry import GROUPS

OTHER = "Other checks"
"""Where a check stands that this version has no words for: the snapshot was diagnosed by another one."""

_SECTION_OF = {check.check_id: group.title for group in GROUPS for check in group.checks}


def section_of(check_id: str) -> str:
    """The part of the guide that a check belongs to."""
    return _SECTION_OF.get(check_id, OTHER)
