"""Why silence means nothing: what was not read of brokers that a check has to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question
from pulsar_steward.checks.words import named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer

BROKERS_READ = Question("select count(*) as brokers from brokers where read")
"""How many brokers were read, for `nothing_read`."""


def nothing_read(answer: Answer) -> str | None:
    """Why silence means nothing where no broker was read; None where one was."""
    return None if answer.one["brokers"] else "No broker was read."


def not_telling(setting: str) -> Question:
    """The brokers with topics that did not tell a setting, for `setting_unread`.

    Args:
        setting: Its name in ``broker.conf``.
    """
    return Question(f"""
        select broker from brokers anti join setting('{setting}') using (broker)
        where read and coalesce(topics, 1) > 0
    """)


def setting_unread(answer: Answer, setting: str) -> str | None:
    """Why silence means nothing where brokers with topics did not tell a setting; None where all did."""
    names = [row["broker"] for row in answer.rows]
    return f"The setting {setting} is not in the snapshot for {named(names)}." if names else None
