"""Reasons why the absence of findings proves nothing: data that was not read of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question
from pulsar_steward.checks.words import named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckAnswer

BROKERS_READ = Question("select count(*) as brokers from brokers where read")
"""Question for `nothing_read`: the number of brokers that were read."""


def nothing_read(answer: CheckAnswer) -> str | None:
    """Reason why the absence of findings proves nothing, if no broker was read; None if one was."""
    return None if answer.one["brokers"] else "No broker was read."


def not_telling(setting: str) -> Question:
    """Question for `setting_unread`: the brokers with topics that did not report a setting.

    Args:
        setting: Its name in ``broker.conf``.
    """
    return Question(f"""
        select broker from brokers anti join setting('{setting}') using (broker)
        where read and coalesce(topics, 1) > 0
    """)


def setting_unread(answer: CheckAnswer, setting: str) -> str | None:
    """Reason why the absence of findings proves nothing, if brokers with topics did not report a setting; else None."""
    names = [row["broker"] for row in answer.rows]
    return f"The setting {setting} is not in the snapshot for {named(names)}." if names else None
