"""Reasons why the absence of findings proves nothing: data that could not be read from brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pulsar_steward.checks.check import Question
from pulsar_steward.model.units import named

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.checks.check import CheckAnswer, CheckContext


def unread_servers(context: CheckContext[Any], kinds: Collection[str], read: Collection[str]) -> str | None:
    """Reason why the absence of findings proves nothing, if `collect.metrics_urls` names servers without metrics.

    Args:
        context: Context of the calling check.
        kinds: The kinds of servers that it judges, as `collect.metrics_urls` names them.
        read: Servers of these kinds that are in the snapshot.
    """
    urls = (each.partition("=") for each in context.policy.collect.metrics_urls)
    servers = dict.fromkeys(urlsplit(url).netloc for kind, _, url in urls if kind in kinds)
    missing = [each for each in servers if each not in read]
    return f"The snapshot lacks metrics of {named(missing)}, named in collect.metrics_urls." if missing else None


def silent_in(answer: str) -> Question:
    """Query for the brokers that were read, but are no `source` in a result of the shards.

    Args:
        answer: The name of the shards' query.
    """
    heard = f"select source as broker from {answer}"
    return Question(f"select broker from brokers anti join ({heard}) using (broker) where read")


def brokers_of(answer: CheckAnswer) -> list[str]:
    """Names of the brokers, in order."""
    return [row["broker"] for row in answer.rows]


BROKERS_READ = Question("select count(*) as brokers from brokers where read")
"""Query for `nothing_read`: the number of brokers that were read."""


def nothing_read(answer: CheckAnswer) -> str | None:
    """Reason why the absence of findings proves nothing, if no broker was read; else None."""
    return None if answer.one["brokers"] else "No broker was read."


def not_telling(setting: str) -> Question:
    """Query for `setting_unread`: the brokers with topics that did not report a setting.

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
