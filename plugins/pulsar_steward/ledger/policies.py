"""Policies in force for plans and requests, each recorded once and found by its digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from pulsar_steward.errors import LedgerTampered, NotInLedger
from pulsar_steward.ledger.tables import POLICIES
from pulsar_steward.policy.recorded import RecordedPolicy

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from pulsar_steward.ledger.chain import Appending
    from pulsar_steward.policy.schema import Policy


def recorded_policy(connection: Connection, digest: str) -> RecordedPolicy:
    """A policy that was in force for a plan or a request.

    Raises:
        NotInLedger: If it was never recorded, or by another version in a format that this one does not read.
        LedgerTampered: If the recorded policy does not have this digest.
    """
    document = connection.execute(select(POLICIES.c.document).where(POLICIES.c.digest == digest)).scalar()
    if document is None:
        raise NotInLedger(f"the ledger holds no policy {digest[:12]}")
    if hashlib.sha256(document.encode()).hexdigest() != digest:
        raise LedgerTampered(f"policy {digest[:12]} in the ledger was changed after it was recorded")
    try:
        return RecordedPolicy.decoded(document)
    except msgspec.ValidationError as error:
        raise NotInLedger(f"policy {digest[:12]} is in a format that this version does not read: {error}") from error


def add_policy(chain: Appending, policy: Policy | None, at: datetime) -> None:
    """Records a policy, unless it is recorded already."""
    if policy is None:
        return
    if chain.connection.execute(select(POLICIES.c.digest).where(POLICIES.c.digest == policy.digest)).first() is None:
        chain.add(POLICIES, {"digest": policy.digest, "at": at, "document": policy.document().decode()})
