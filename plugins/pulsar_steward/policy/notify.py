"""Section of messages: who gets which message, by which of Airflow's connections."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.model.section import Section, number

CONNECTIONS = "steward_notify_"
"""Prefix of the names of connections that may receive messages.

A policy's editor thus cannot send the ledger's content to a connection made for another purpose. Connections with this
prefix are made by people who may make connections.
"""

_CONNECTION = re.compile(rf"{CONNECTIONS}[A-Za-z0-9_.-]{{1,150}}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class RecipientKind(StrEnum):
    """Channel of a message."""

    WEBHOOK = "webhook"
    SMTP = "smtp"
    SLACK = "slack"
    PAGERDUTY = "pagerduty"
    APPRISE = "apprise"


def _connection(text: str) -> str:
    if not _CONNECTION.fullmatch(text):
        raise ValueError(
            f"{text!r} is no connection for messages: its name begins with {CONNECTIONS}, and goes on with letters,"
            " digits, `_`, `.` or `-`; its address and secrets are in Airflow alone"
        )
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no recipient's name: letters, digits, `_`, `.` and `-`, 100 at most")
    return text


class Recipient(Section):
    """A recipient of messages; addresses and secrets are in the connection."""

    connection: Annotated[str, AfterValidator(_connection)] = Field(
        description=f"Airflow's connection, {CONNECTIONS}...; it holds address and secrets"
    )
    kind: RecipientKind = Field(description="how messages travel: webhook, smtp, slack, pagerduty or apprise")
    events: tuple[Occasion, ...] = Field((), description="what is told; empty: everything")
    min_severity: Severity = Field(Severity.INFO, description="what is told at least: info, warning or critical")

    def wants(self, occasion: Occasion, severity: Severity) -> bool:
        """True if this recipient gets such a message."""
        return (not self.events or occasion in self.events) and severity.rank >= self.min_severity.rank


RecipientName = Annotated[str, AfterValidator(_name)]


class NotifyPolicy(Section):
    """People and systems that get messages; without a recipient nothing is sent."""

    recipients: dict[RecipientName, Recipient] = Field({}, description="who is told, by name; none: nothing is sent")
    expiring_minutes: int = number(60, "before a question ends unanswered, when that is told; half of its time at most")
