"""Sections of the checks, each defined beside its check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy
    from pulsar_steward.checks.placement.broker_load import BrokerLoadSkewPolicy
    from pulsar_steward.checks.placement.bundle_load import BundleTopicSkewPolicy, HotBundlePolicy
    from pulsar_steward.checks.placement.coordinators import TcSkewPolicy

    class CheckSections(Section):
        """Sections of the checks, each an attribute with the check's name; the registry knows their names."""

        # Sections that other code than the check itself reads; other checks need no line here.
        backlog_growing: BacklogGrowingPolicy = BacklogGrowingPolicy()
        broker_load_skew: BrokerLoadSkewPolicy = BrokerLoadSkewPolicy()
        bundle_topic_skew: BundleTopicSkewPolicy = BundleTopicSkewPolicy()
        hot_bundle: HotBundlePolicy = HotBundlePolicy()
        tc_skew: TcSkewPolicy = TcSkewPolicy()

        def __getattr__(self, name: str) -> Any:
            """Section of the check with this name."""

else:
    CheckSections = create_model(
        "CheckSections", __base__=Section, **{check.section: (check.policy, check.policy()) for check in CHECKS}
    )
