"""Brokers without the figures that a check needs: for them, the absence of findings proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckAnswer


def silent_in(answer: str) -> Question:
    """Question for the brokers that were read, but are no `source` in an answer of the shards.

    Args:
        answer: The name of the shards' question.
    """
    heard = f"select source as broker from {answer}"
    return Question(f"select broker from brokers anti join ({heard}) using (broker) where read")


def brokers_of(answer: CheckAnswer) -> list[str]:
    """Names of the brokers, in order."""
    return [row["broker"] for row in answer.rows]
