"""Brokers that said nothing of what a check looks at: where they are, silence means nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer


def silent_in(answer: str) -> Question:
    """The brokers that were read, but are no `source` in what shards answered.

    Args:
        answer: The name of the shards' question.
    """
    heard = f"select source as broker from {answer}"
    return Question(f"select broker from brokers anti join ({heard}) using (broker) where read")


def brokers_of(answer: Answer) -> list[str]:
    """Their names, in order."""
    return [row["broker"] for row in answer.rows]
