"""The parts of the guide for a cluster in trouble, in its order, with the checks of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.catalog import backlog, clients, delayed, placement, resources

if TYPE_CHECKING:
    from pulsar_steward.model.catalog import CheckInfo

SECTIONS: tuple[tuple[str, tuple[CheckInfo, ...]], ...] = (
    ("Resources of brokers and bookies", resources.CHECKS),
    ("Clients and acknowledgements", clients.CHECKS),
    ("Where things are", placement.CHECKS),
    ("Backlog, retention and expiry", backlog.CHECKS),
    ("Delayed messages and capacity", delayed.CHECKS),
)

OTHER = "Other checks"
"""Where a check stands that this version has no words for: the snapshot was diagnosed by another one."""

_SECTION_OF = {info.check_id: title for title, infos in SECTIONS for info in infos}


def section_of(check_id: str) -> str:
    """The part of the guide that a check belongs to."""
    return _SECTION_OF.get(check_id, OTHER)
