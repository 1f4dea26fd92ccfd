"""Bookies and other servers that the policy names, and of which a snapshot has no metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pulsar_steward.checks.words import named

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.checks.check import CheckContext


def unread_servers(context: CheckContext[Any], kinds: Collection[str], read: Collection[str]) -> str | None:
    """Reason why the absence of findings proves nothing, if `collect.metrics_urls` names servers without metrics.

    Args:
        context: Context of the check that asks.
        kinds: The kinds of servers that it judges, as `collect.metrics_urls` has them.
        read: Servers of these kinds that are in the snapshot.
    """
    urls = (each.partition("=") for each in context.policy.collect.metrics_urls)
    servers = dict.fromkeys(urlsplit(url).netloc for kind, _, url in urls if kind in kinds)
    missing = [each for each in servers if each not in read]
    return f"The snapshot lacks metrics of {named(missing)}, named in collect.metrics_urls." if missing else None
