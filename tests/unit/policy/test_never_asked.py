"""The entry that a policy would have to have, so that something is not proposed any more."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from pulsar_steward.model.plan import KINDS, ROLLBACK, Batch
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.never_asked import (
    namespace_to_leave_alone,
    never_asked_about,
    never_asked_entry,
)
from tests.builders import a_batch, a_move, a_split, a_step

TTL = ChangeSetting(namespace="acme/x", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
SETS, SPLITS, MOVES = a_step(TTL), a_step(a_split(namespace="acme/x")), a_step(a_move(namespace="acme/x"))


def test_the_entry_holds_up_as_a_policy() -> None:
    """The entry is a valid policy that leaves out the given kinds for its namespace only."""
    policy = parse_policy(yaml.safe_load(never_asked_entry("acme/x", ["retention", "backlog_quota"])), name="p")
    assert policy.for_namespace("acme/x").approval.never_ask == ("backlog_quota", "retention")
    assert policy.for_namespace("acme/y").approval.never_ask == policy.approval.never_ask == ()


@pytest.mark.parametrize("kind", [each for each in KINDS if each != ROLLBACK])
def test_every_kind_that_is_planned_can_be_left_out(kind: str) -> None:
    """The entry can leave out each kind of batch except rollbacks, by the name that plans use."""
    policy = parse_policy(yaml.safe_load(never_asked_entry("a/b", [kind])), name="p")
    assert policy.for_namespace("a/b").approval.never_ask == (kind,)


@pytest.mark.parametrize(
    ("batch", "namespace"),
    [
        (a_batch(SETS), "acme/x"),
        (a_batch(SPLITS), "acme/x"),
        (a_batch(SPLITS, MOVES), "acme/x"),
        (a_batch(MOVES), None),
        (a_batch(SETS, a_step(msgspec.structs.replace(TTL, namespace="acme/y"))), None),
        (a_batch(SETS, kind=ROLLBACK), None),
        (a_batch(a_step(msgspec.structs.replace(TTL, namespace="no namespace"))), None),
    ],
    ids=["a setting", "a split", "a split and its move", "moves", "two namespaces", "a rollback", "no name of one"],
)
def test_what_is_about_one_namespace(batch: Batch, namespace: str | None) -> None:
    """A batch of settings or splits in one namespace is about that namespace; moves or a rollback are about none."""
    assert namespace_to_leave_alone(batch) == namespace


@pytest.mark.parametrize("kind", ["bundle_split", "bundle_balance"])
def test_splits_with_moves_are_left_out_by_either_kind(kind: str) -> None:
    """A batch that splits and moves parts is left out for its kind and for that of moves; one of splits is not."""
    policy = parse_policy(yaml.safe_load(never_asked_entry("acme/x", [kind])), name="p")
    both, alone = (a_batch(*steps, kind="bundle_split") for steps in ((SPLITS, MOVES), (SPLITS,)))
    assert never_asked_about(both, policy) == f"{kind} of acme/x"
    assert (never_asked_about(alone, policy) is None) is (kind == "bundle_balance")
