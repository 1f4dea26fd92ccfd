"""Age of findings, from the diagnoses of earlier snapshots, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.tables import FINDINGS, SNAPSHOT, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.folder import SnapshotFolder

Key = tuple[str, str]
"""Check id and subject, which identify a finding across snapshots."""


@dataclass(frozen=True)
class FindingAge:
    """Age of a finding in an earlier snapshot."""

    first_seen: datetime
    snapshots_in_a_row: int


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of an earlier snapshot.

    Attributes:
        judged: Ids of the checks with a result other than "unknown".
        stood: Age of each finding.
    """

    judged: frozenset[str]
    stood: Mapping[Key, FindingAge]


def earlier_diagnoses(folders: Iterable[SnapshotFolder]) -> Iterator[Diagnosis]:
    """Yields the diagnoses of snapshots, each read on demand."""
    for folder in folders:
        (about,) = folder.read(SNAPSHOT).select(["taken_at"]).to_pylist()
        verdicts = folder.read(VERDICTS).select(["check_id", "outlook"]).to_pylist()
        stood = {
            (each["check_id"], each["subject"]): FindingAge(
                each["first_seen"] or about["taken_at"], each["snapshots_in_a_row"] or 1
            )
            for each in folder.read(FINDINGS).to_pylist()
        }
        judged = frozenset(each["check_id"] for each in verdicts if each["outlook"] != Outlook.UNKNOWN.value)
        yield Diagnosis(judged=judged, stood=stood)


def with_history(findings: Sequence[Finding], taken_at: datetime, earlier: Iterable[Diagnosis]) -> list[Finding]:
    """Adds their age to findings.

    Args:
        findings: Findings of this snapshot.
        taken_at: Its time, UTC.
        earlier: Diagnoses of earlier snapshots of the cluster, newest first; read only as far as needed.
    """
    known: dict[Key, FindingAge] = {}
    unsettled = {finding.check_id for finding in findings}
    for diagnosis in earlier if unsettled else ():
        settled = unsettled & diagnosis.judged
        known |= {key: stood for key, stood in diagnosis.stood.items() if key[0] in settled}
        unsettled -= settled
        if not unsettled:
            break
    return [_stood(finding, known.get((finding.check_id, finding.subject)), taken_at) for finding in findings]


def _stood(finding: Finding, before: FindingAge | None, taken_at: datetime) -> Finding:
    if before is None:
        return msgspec.structs.replace(finding, first_seen=taken_at, snapshots_in_a_row=1)
    in_a_row = before.snapshots_in_a_row + 1
    return msgspec.structs.replace(finding, first_seen=before.first_seen, snapshots_in_a_row=in_a_row)
