"""What the guards look at right before a change: the live cluster, and what the ledger tells of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.apply.dangers import dangers
from pulsar_steward.apply.setting_now import setting_now
from pulsar_steward.guard.hazards import Hazards
from pulsar_steward.guard.view import BundleView, ClusterView
from pulsar_steward.model.step import Change, ChangeSetting, present_owner

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.apply.look import Look
    from pulsar_steward.apply.past import Past
    from pulsar_steward.model.step import BundleChange
    from pulsar_steward.policy.schema import Policy

BOOKIE_STATUS = "bookie_SERVER_STATUS"
"""1: writable; 0: read-only, as its own metrics tell."""


def view_of(look: Look, change: Change, policy: Policy, past: Past) -> ClusterView:
    """What the guards look at before this change.

    Raises:
        AdminError: If the cluster cannot be read.
    """
    listed = frozenset(look.brokers())
    silent = look.silent(sorted(listed))
    return ClusterView(
        now=past.now,
        seen_at=past.seen_at,
        pulsar_cluster=look.identity(),
        planned_for=past.planned_for,
        brokers=listed - silent,
        silent=tuple(sorted(silent)),
        read_only_bookies=_read_only(look, policy),
        unproved=past.unproved,
        changes_in_the_last_hour=past.changes_in_the_last_hour,
        place_in_run=past.place_in_run,
        allowed=look.allowed(change.namespace, listed),
        bundle=None if isinstance(change, ChangeSetting) else _bundle(look, change, listed, policy, past),
        setting=setting_now(look, change, listed - silent, policy) if isinstance(change, ChangeSetting) else None,
        policy=policy,
    )


def _bundle(look: Look, change: BundleChange, listed: Collection[str], policy: Policy, past: Past) -> BundleView:
    namespace, bundle = change.namespace, change.bundle
    owner = look.owner(namespace, bundle, likely=present_owner(change), listed=listed)
    exists = bundle in (look.bundles(namespace) or ())
    # What is no longer as it was planned is refused by other guards; only what is there is asked further.
    hazards = dangers(look, owner, namespace, bundle, policy.guards) if owner and exists else Hazards()
    return BundleView(
        exists=exists,
        owner=owner,
        clients=look.touched(change, owner) if owner else 0,
        moved_at=past.moved_at,
        circling=past.circling,
        hazards=hazards,
    )


def _read_only(look: Look, policy: Policy) -> tuple[str, ...]:
    urls = [url for kind, _, url in (named.partition("=") for named in policy.collect.metrics_urls) if kind == "bookie"]
    return tuple(url for url in urls if any(sample.value == 0 for sample in look.bookie_samples(url, BOOKIE_STATUS)))
