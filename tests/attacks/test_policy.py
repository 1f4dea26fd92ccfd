"""Under that policy: acting is never looser than what was planned and asked under."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import delete, update

from pulsar_steward.errors import LedgerTampered, PolicyError
from pulsar_steward.ledger.tables import POLICIES
from pulsar_steward.model.section import Section
from pulsar_steward.policy import looser
from pulsar_steward.policy.load import load_policy, parse_policy
from pulsar_steward.policy.recorded import RecordedPolicy
from pulsar_steward.policy.schema import Policy
from tests.apply.refusals import assert_refused
from tests.apply.worksite import quick_policy, said

if TYPE_CHECKING:
    from tests.apply.worksite import Worksite

PACKAGE = Path(looser.__file__).parents[1]
OF_OTHER_SECTIONS = {
    "backlog_quota_remedy.room_percent",
    "cluster_placement.warning_cpu_percent_after_loss",
    "collect.metrics_urls",
    "logical_clusters.named",
    "partition_ceiling.critical_topics_per_broker",
    "tc_skew.cooldown_minutes",
}
URL = "http://127.0.0.1:9/metrics"
PAIR = {"primary": "east", "extensions": ["west"]}
NIGHT = {"opens": "0 22 * * *", "minutes": 60}
DAY = {"opens": "0 0 * * *", "minutes": 1440}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("!!set {a/b, c/d}", "set"),
        ("[!!set {a/b}]", "set"),
        ("!!omap [a: b]", "omap"),
        ("!!pairs [a: b]", "pairs"),
        ("[!!binary YS9i]", "binary"),
        ("[2026-01-01]", "timestamp"),
    ],
)
def test_a_policy_of_plain_values_alone_is_the_same_in_every_process(tmp_path: Path, value: str, kind: str) -> None:
    """A value of YAML's own that JSON has not is an error at its place: the order of a set differs by process."""
    file = tmp_path / "policy.yaml"
    file.write_text(f"apply:\n  protected_namespaces: {value}\n", encoding="utf-8")
    with pytest.raises(PolicyError, match=rf"policy.yaml:2:2\d: is a {kind} to YAML: write a list"):
        load_policy(file)


def test_a_policy_of_a_program_holds_no_set() -> None:
    """A policy that a program gives is refused where it holds a set, too."""
    with pytest.raises(PolicyError, match=r"apply\.protected_namespaces: is a set"):
        parse_policy({"apply": {"protected_namespaces": {"a/b", "c/d"}}}, name="p")


BY_DEFAULT = None
"""In the place of a value: the key is left out."""
LOOSER: list[tuple[str, Any, Any, str]] = [
    ("cluster_placement.warning_cpu_percent_after_loss", 85, 90, "is 90, and was 85"),
    ("partition_ceiling.critical_topics_per_broker", 60_000, 70_000, "is 70000, and was 60000"),
    ("approval.two_people_for", ["tc_balance"], [], "approval.two_people_for is none"),
    ("approval.assigned_users", ["operator"], [], "everyone may answer to tc_balance"),
    ("approval.assigned_users", ["operator"], ["operator", "mallory"], "'operator'] may answer to tc_balance"),
    ("approval.assigned_users_by_kind", {"tc_balance": ["operator"]}, BY_DEFAULT, "everyone may answer to tc_balance"),
    ("approval.requester_may_approve", False, True, "approval.requester_may_approve is"),
    ("approval.valid_minutes", 5, 60, "approval.valid_minutes is 60"),
    ("approval.by_risk", {"low": {"people": 2}}, {"medium": {"people": 2}}, "of low risk 1 has to approve"),
    (
        "approval.by_risk",
        {"low": {"users": ["operator"]}},
        {"low": {"users": ["operator", "mallory"]}},
        "'operator'] may answer to tc_balance",
    ),
    (
        "approval.by_risk",
        {"critical": {"valid_minutes": 5}},
        BY_DEFAULT,
        "of critical risk an approval counts 240 minutes, and did 5",
    ),
    (
        "approval.by_risk",
        {"high": {"requester_may_approve": False}},
        BY_DEFAULT,
        "of high risk who started the run may approve",
    ),
    ("apply.most_clients_per_step", 10, 11, "apply.most_clients_per_step is 11"),
    ("apply.bundle_moves_per_minute", 1, BY_DEFAULT, "apply.bundle_moves_per_minute is"),
    ("apply.protected_namespaces", ["shop/orders"], ["shop/others"], "apply.protected_namespaces is"),
    ("apply.intent_valid_seconds", 5, BY_DEFAULT, "apply.intent_valid_seconds is"),
    ("guards.windows", [DAY], [], "guards.windows is none"),
    ("guards.windows", [DAY], [DAY, NIGHT], "guards.windows is ["),
    ("guards.windows", [DAY], [{**DAY, "minutes": 1441}], "guards.windows is ["),
    ("backlog_quota_remedy.room_percent", 10, 9, "backlog_quota_remedy.room_percent is 9"),
    ("collect.metrics_urls", [f"bookie={URL}", f"zookeeper={URL}"], [f"zookeeper={URL}"], "collect.metrics_urls is"),
    ("logical_clusters.named", {"one": PAIR}, BY_DEFAULT, "logical_clusters.named is none"),
    ("logical_clusters.named", {"one": PAIR}, {"one": {"primary": "east"}}, "logical_clusters.named is {"),
    ("guards.versions_tried_here", ["4.3"], ["4.3", "5.0"], "guards.versions_tried_here is"),
    ("guards.quota_margin_percent", 50, BY_DEFAULT, "guards.quota_margin_percent is"),
    ("guards.most_changes_per_hour", 10, BY_DEFAULT, "guards.most_changes_per_hour is"),
    ("guards.most_coordinators", 8, 9, "guards.most_coordinators is 9"),
    ("guards.coordinators_rest_minutes", 6000, BY_DEFAULT, "guards.coordinators_rest_minutes is"),
    ("brokers.draining", ["broker:8080"], BY_DEFAULT, "brokers.draining is none"),
    ("health.most_missing_clients_percent", 1, BY_DEFAULT, "health.most_missing_clients_percent is"),
    ("tc_skew.cooldown_minutes", 600, BY_DEFAULT, "tc_skew.cooldown_minutes is"),
]


def with_value(key: str, value: Any) -> Policy:
    """The usual policy with another value of ``section.key``."""
    section, _, name = key.partition(".")
    return quick_policy(**{section: {} if value is BY_DEFAULT else {name: value}})


@pytest.mark.parametrize("when", ["planned", "asked"])
@pytest.mark.parametrize(
    ("tight", "loose", "words"),
    [
        *((with_value(key, then), with_value(key, now), words) for key, then, now, words in LOOSER),
        (
            quick_policy(approval={"assigned_users": ["operator"]}),
            quick_policy(approval={"assigned_users_by_kind": {"tc_balance": ["mallory"]}}),
            "['mallory'] may answer to tc_balance",
        ),
    ],
)
def test_acting_is_never_looser_than_what_was_agreed_to(
    site: Worksite, tight: Policy, loose: Policy, words: str, when: str
) -> None:
    """A batch is refused when the policy is looser than the one under which it was planned or asked about."""
    site.policy = tight if when == "planned" else loose
    plan = site.plan(site.move(0))
    site.policy = tight if when == "asked" else loose
    site.approve(plan)
    site.policy = loose
    assert_refused(site, plan, f"looser than the one under which this was {when}.*{re.escape(words)}")


def test_a_stricter_policy_is_none_that_refuses_by_itself(site: Worksite) -> None:
    """A batch is carried out under a policy that became stricter, if that policy permits it."""
    plan = site.approved(site.move(0))
    site.policy = quick_policy(apply={"most_clients_per_step": 1000, "intent_valid_seconds": 5})
    assert said(site.carry_out(plan)) == ["done"]


SHORTER = {**DAY, "minutes": 1439}


@pytest.mark.parametrize(
    ("section", "then", "now"),
    [
        ("guards", {"windows": [DAY, NIGHT]}, {"windows": [SHORTER]}),
        ("collect", {"metrics_urls": [f"zookeeper={URL}"]}, {"metrics_urls": []}),
        ("logical_clusters", {"named": {"one": PAIR}}, {"named": {"two": {**PAIR, "extensions": ["West", "north"]}}}),
    ],
    ids=[
        "shorter and fewer windows",
        "a ZooKeeper server that is not asked any more",
        "a logical cluster of another name with one more member",
    ],
)
def test_what_permits_no_more_is_not_looser(section: str, then: dict[str, Any], now: dict[str, Any]) -> None:
    """A shorter window, an unused metrics address less, or one more member does not make a policy looser."""
    assert looser.loosened(quick_policy(**{section: now}), RecordedPolicy.of(quick_policy(**{section: then}))) == ()


def test_an_approval_is_good_no_longer_than_any_of_the_policies_says(site: Worksite) -> None:
    """An approval expires after the time that the policy sets, even if its ledger row names a later time."""
    site.policy = quick_policy(approval={"valid_minutes": 5})
    plan = site.plan(site.move(0))
    site.approve(plan)
    site.clock.advance(minutes=6)
    assert_refused(site, plan, "the approval has expired")


def test_a_policy_that_was_not_recorded_permits_nothing(site: Worksite) -> None:
    """A batch is refused when the policy of its plan is not recorded in the ledger."""
    plan = msgspec.structs.replace(site.plan(site.move(0)), policy_digest="0" * 64)
    site.writes.record_plan(plan, site.clock())
    assert_refused(site, site.approve(plan), "lacks the policy under which this was planned")


@pytest.mark.parametrize("statement", [delete(POLICIES), update(POLICIES).values(document="{}")], ids=["gone", "other"])
def test_a_recorded_policy_cannot_be_changed_unseen(site: Worksite, statement: Any) -> None:
    """`LedgerTampered` is raised for a batch when a recorded policy was deleted or changed in the ledger."""
    plan = site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.execute(statement)
    assert_refused(site, plan, "of policies", error=LedgerTampered)


def test_every_key_that_bounds_what_is_done_says_what_is_looser() -> None:
    """Every key of the policy sections that bound changes is listed with a comparison or as neutral."""
    keys = {f"{name}.{key}" for name in looser.SECTIONS for key in type(getattr(Policy(), name)).model_fields}
    assert keys == (looser.LOOSER.keys() | looser.NEUTRAL.keys() | {*looser.USERS, *looser.TERMS}) - OF_OTHER_SECTIONS
    assert not looser.LOOSER.keys() & looser.NEUTRAL.keys()


def test_every_policy_key_that_guards_read_is_compared() -> None:
    """Each key of any section that the guards, or the facts that they ask for, read is listed with a comparison."""
    sections = {name: type(section).model_fields.keys() for name, section in Policy() if isinstance(section, Section)}
    read = {
        f"{section}.{key}"
        for folder in ("guards", "apply", "facts")
        for file in (PACKAGE / folder).glob("*.py")
        for section, name in re.findall(r"policy\.([a-z_]+)\.([a-z_]+)", file.read_text(encoding="utf-8"))
        if section in sections
        for key in sections[section] & {name} or sections[section]  # a method may read every key
    }
    assert {"backlog_quota_remedy.room_percent", "logical_clusters.named", "guards.windows"} <= read
    listed = looser.LOOSER.keys() | looser.NEUTRAL.keys() | {*looser.USERS, *looser.TERMS}
    assert read - listed == {"admin.read_timeout_seconds", "backlog_quota_remedy.most_topics_asked"}, (
        "these say how long and how much is asked, and where that is too little nothing is changed"
    )
