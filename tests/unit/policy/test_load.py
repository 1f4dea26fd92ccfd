"""Policies are read, checked and recorded: whole, their notices, and what is never asked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
import yaml
from pydantic import BaseModel, ValidationError

from pulsar_steward.errors import PolicyError
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.isolation import Failover, FailoverLimits, policy_in_words
from pulsar_steward.model.notice import Occasion
from pulsar_steward.model.plan import KINDS, ROLLBACK, Batch
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.policy.approval import UNLIMITED
from pulsar_steward.policy.load import load_policy, parse_policy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.never_asked import namespace_to_leave_alone, never_asked_about, never_asked_entry
from pulsar_steward.policy.recorded import Pace, RecordedPolicy
from pulsar_steward.policy.schema import Policy
from tests.builders import a_batch, a_move, a_policy, a_split, a_step
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from pathlib import Path

UNIT_WORDS = """
    attempts batches bookies broker brokers buckets bundle bundles bytes changes clients cluster collections
    connections consumers coordinators copies days entries files groups hour hours leaders ledgers limits mean
    mebibytes megabytes members message messages milliseconds minute minutes moves namespaces node nodes
    operations others partitions people percent processors producers redirects replicas requests second seconds
    signs snapshots splits step steps subscription subscriptions suspects switches tasks threads throttlings
    topics transactions turnovers
"""
UNITS = frozenset(UNIT_WORDS.split())
"""What a whole number counts; one of these words is in every such key's name."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Path at which a test may write a policy."""
    return tmp_path / "policy.yaml"


def test_without_a_file_the_defaults_hold(file: Path) -> None:
    assert load_policy(None) == Policy()
    with pytest.raises(PolicyError, match="no such file"):
        load_policy(file)


def test_a_key_takes_the_place_of_its_default_only(file: Path) -> None:
    file.write_text("tc_skew:\n  warning_spread_coordinators: 5\nbrokers:\n  draining: ['a:8080', 'b:8080']\n")
    loaded = load_policy(file)
    assert loaded.tc_skew.warning_spread_coordinators == 5
    assert loaded.tc_skew.cooldown_minutes == Policy().tc_skew.cooldown_minutes
    assert loaded.brokers.draining == ("a:8080", "b:8080")
    assert loaded.apply == Policy().apply


@row_by_row(
    "document, words",
    ({"tc_skw": {}}, "tc_skw: no such key; did you mean tc_skew?"),
    ({"zzz": 1}, "zzz: no such key$"),
    ({"tc_skew": {"cooldown_minute": 5}}, r"tc_skew.cooldown_minute: .* cooldown_minutes\?"),
    ({"apply": {"lease_second": 9}}, r"apply.lease_second: .* lease_seconds\?"),
    ({"admin": {"verify_everything": True}}, "admin.verify_everything: no such key$"),
    ({"admin": {"redirects": "many"}}, "admin.redirects: has to be a whole number"),
    ({"admin": {"redirects": 2.5}}, "admin.redirects: has to be a whole number"),
    ({"admin": {"redirects": None}}, "admin.redirects: has to be a whole number"),
    ({"admin": {"redirects": 0}}, "admin.redirects: has to be 1 or more"),
    ({"admin": {"redirects": 99}}, "admin.redirects: has to be 20 or less"),
    ({"tc_skew": {"critical_share_percent": 101}}, "tc_skew.critical_share_percent: has to be 100 or less"),
    ({"brokers": {"draining": "a:8080"}}, "brokers.draining: has to be a list"),
    ({"brokers": {"draining": [8080]}}, r"brokers.draining.0: has to be a text"),
    ({"approval": {"decide_by": "plan"}}, "approval.decide_by: .* 'namespace', 'tenant' or 'kind'"),
    ({"approval": {"decide_by_kind": {"retention": "all"}}}, "decide_by_kind.retention: .* 'tenant' or 'kind'"),
    ({"approval": {"decide_by_kind": {"tc_balance": "kind"}}}, "'tc_balance' is always asked about by itself"),
    ({"approval": {"decide_by_kind": {"retentions": "kind"}}}, "'retentions' is no kind of batch"),
    ({"approval": {"most_steps": 0}}, "approval.most_steps: has to be 1 or more"),
    ({"approval": {"most_steps": "all"}}, "approval.most_steps: has to be a whole number"),
    ({"apply": 5}, "apply: has to be a mapping"),
    ({"apply": None}, "apply: has to be a mapping"),
    ([], "the document: has to be a mapping"),
    ("text", "the document: has to be a mapping"),
)
def test_what_does_not_hold_up_is_named(document: Any, words: str) -> None:
    """An invalid policy is refused with a message that names the file, the key and the reason."""
    with pytest.raises(PolicyError, match=words) as caught:
        parse_policy(document, name="east.yaml")
    assert str(caught.value).startswith("east.yaml: ")


def test_every_trouble_is_named_at_once() -> None:
    """A policy with several errors is refused with one message that names them all."""
    with pytest.raises(PolicyError, match=r"admin.redirects: .*; apply.leas: no such key"):
        parse_policy({"admin": {"redirects": 0}, "apply": {"leas": 1}}, name="p")


@pytest.mark.parametrize(
    "content", [b"admin: [", b"\tadmin: 1", b"admin: \xff", b"!!python/name:os.system", b"[]", b"false", b"0"]
)
def test_a_file_that_is_no_policy_is_refused(content: bytes, file: Path) -> None:
    """A file that is not YAML, not UTF-8 or not a mapping is refused with an error that names the file."""
    file.write_bytes(content)
    with pytest.raises(PolicyError, match=str(file)):
        load_policy(file)


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    """A folder in place of a policy file is refused with the message that it is no file."""
    with pytest.raises(PolicyError, match="no such file"):
        load_policy(tmp_path)


def types_in(annotation: object) -> list[object]:
    """A type and all types within it, such as those of a union or of a list's elements."""
    return [annotation, *(inner for each in get_args(annotation) for inner in types_in(each))]


def sections(of: type[BaseModel] = Policy, place: str = "") -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    for name, field in of.model_fields.items():
        for each in types_in(field.annotation):
            if isinstance(each, type) and issubclass(each, BaseModel):
                found |= {f"{place}{name}": each} | sections(each, f"{place}{name}.")
    return found


@pytest.mark.parametrize("section", sections())
def test_every_key_has_a_unit_and_a_meaning(section: str) -> None:
    """Each key of a section, or of a model in it, has a description, and each integer key has its unit in its name."""
    for name, field in sections()[section].model_fields.items():
        assert field.description
        assert int not in types_in(field.annotation) or UNITS & set(name.split("_"))


def test_a_policy_cannot_be_changed() -> None:
    """Assigning a new value to a key of a policy raises a validation error."""
    with pytest.raises(ValidationError):
        Policy().apply.lease_seconds = 9  # type: ignore[misc]  # that is the point


def test_the_digest_is_of_the_effective_values(file: Path) -> None:
    """A default that is written out does not change the policy's digest, and any other value does."""
    file.write_text("tc_skew: {cooldown_minutes: 30}")
    assert load_policy(file).digest == Policy().digest
    changed = [
        {"tc_skew": {"cooldown_minutes": 31}},
        {"brokers": {"draining": ["a:8080"]}},
        {"brokers": {"draining": ["b:8080"]}},
        {"apply": {"lease_seconds": 61}},
    ]
    assert len({Policy().digest, *(parse_policy(each, name="p").digest for each in changed)}) == 5


def recorded(values: dict[str, Any]) -> RecordedPolicy:
    return RecordedPolicy.decoded(msgspec.json.encode(values))


@pytest.mark.parametrize(
    "values", [{}, {"approval": {}}, {"approval": {"by_risk": {}, "of_tomorrow": 7}, "tomorrow": [1]}], ids=str
)
def test_what_is_missing_limits_nothing(values: dict[str, Any]) -> None:
    """A recorded policy without a section or a key limits nothing, and has the defaults of rest and pace."""
    found = recorded(values)
    terms = found.approval.terms(("retention",), Risk.LOW)
    assert (terms.users, terms.people, terms.valid_minutes) == (None, 1, UNLIMITED)
    assert (found.rest, found.windows, Pace.of(found)) == (timedelta(days=1), (), Pace())
    assert loosened(Policy(), found) == ()


def test_a_policy_comes_back_as_it_was_recorded() -> None:
    """A policy in force and its record give the same terms, rest and windows."""
    windows = [{"opens": "0 22 * * *", "minutes": 60, "time_zone": "UTC"}]
    approval = {"ask_again_minutes": 5, "valid_minutes": 7, "two_people_for": ["retention"]}
    policy = a_policy(approval=approval, guards={"windows": windows})
    found = RecordedPolicy.of(policy)
    assert (found.approval, found.rest) == (policy.approval.values, timedelta(minutes=5))
    assert found.windows == policy.guards.windows
    assert found.approval.terms(("retention",), Risk.LOW).people == 2


def test_a_format_that_is_not_read_is_an_error_or_unknown() -> None:
    """A value of another type cannot be decoded where it sets terms; windows of another form are left out."""
    with pytest.raises(msgspec.ValidationError, match="valid_minutes"):
        recorded({"approval": {"valid_minutes": "an hour"}})
    assert recorded({"guards": {"windows": [{"opens": "at night"}]}}).windows == ()


OPS = {"connection": "steward_notify_ops", "kind": "webhook"}


def a_document(**recipient: Any) -> dict[str, Any]:
    return {"notify": {"recipients": {"ops": {**OPS, **recipient}}}}


def test_by_default_nobody_is_told() -> None:
    """The default policy has no recipients of messages."""
    assert Policy().notify.recipients == {}


def test_a_recipient_wants_what_it_names() -> None:
    """A recipient gets the events that it names, or all if it names none, from its minimum severity on."""
    everything = parse_policy(a_document(), name="x").notify.recipients["ops"]
    assert all(everything.wants(occasion, Severity.INFO) for occasion in Occasion)
    some = parse_policy(a_document(events=["waiting", "failed"], min_severity="critical"), name="x")
    wants = some.notify.recipients["ops"].wants
    assert wants(Occasion.FAILED, Severity.CRITICAL)
    assert not wants(Occasion.WAITING, Severity.INFO)
    assert not wants(Occasion.UNKNOWN, Severity.CRITICAL)


@row_by_row(
    "connection",
    "pulsar_admin_east",
    "smtp_default",
    "steward_notify_",
    "https://evil.example",
    "steward_notify_a/b",
    " ",
    "",
)
def test_only_connections_made_for_messages_are_sent_to(connection: str) -> None:
    """A recipient's connection is refused unless its id is `steward_notify_` followed by a valid name."""
    with pytest.raises(PolicyError, match=r"notify\.recipients\.ops\.connection.*steward_notify_"):
        parse_policy(a_document(connection=connection), name="x")


@row_by_row(
    "document, words",
    (a_document(url="https://evil.example"), r"notify\.recipients\.ops\.url: no such key$"),
    (a_document(event=["waiting"]), r"notify\.recipients\.ops\.event: no such key; did you mean events\?"),
    (a_document(events=["wating"]), r"notify\.recipients\.ops\.events\.0"),
    (a_document(kind="carrier pigeon"), r"notify\.recipients\.ops\.kind"),
    ({"notify": {"recipients": {"<b>": OPS}}}, "is no recipient's name"),
    ({"notify": {"recipient": {}}}, r"notify\.recipient: no such key; did you mean recipients\?"),
    ({"guards": {"windows": [{"opnes": "0 1 * * *"}]}}, r"guards\.windows\.0\.opnes: no such key; did you mean opens"),
)
def test_what_does_not_hold_up_of_notices_is_named(document: dict[str, Any], words: str) -> None:
    """An invalid policy is refused with the key's place, also below a recipient's name or the number of a list item."""
    with pytest.raises(PolicyError, match=words):
        parse_policy(document, name="x")


def test_a_cluster_has_recipients_of_its_own() -> None:
    """A cluster's own recipients replace those of the file."""
    document = {**a_document(), "clusters": {"east": {"notify": {"recipients": {"east": OPS}}}}}
    policy = parse_policy(document, name="x")
    assert list(policy.for_cluster("east").notify.recipients) == ["east"]
    assert list(policy.for_cluster("west").notify.recipients) == ["ops"]


def test_a_policy_with_recipients_survives_json() -> None:
    """A policy with recipients is the same after it is written as JSON and read again."""
    policy = parse_policy(a_document(events=["waiting"]), name="x")
    assert Policy.model_validate_json(policy.document()) == policy


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


@cases(
    "batch, namespace",
    ("a setting", a_batch(SETS), "acme/x"),
    ("a split", a_batch(SPLITS), "acme/x"),
    ("a split and its move", a_batch(SPLITS, MOVES), "acme/x"),
    ("moves", a_batch(MOVES), None),
    ("two namespaces", a_batch(SETS, a_step(msgspec.structs.replace(TTL, namespace="acme/y"))), None),
    ("a rollback", a_batch(SETS, kind=ROLLBACK), None),
    ("no name of one", a_batch(a_step(msgspec.structs.replace(TTL, namespace="no namespace"))), None),
)
def test_what_is_about_one_namespace(batch: Batch, namespace: str | None) -> None:
    """A batch of settings or splits in one namespace is about that namespace; moves or a rollback are about none."""
    assert namespace_to_leave_alone(batch) == namespace


@pytest.mark.parametrize("kind", ["bundle_split", "bundle_balance"])
def test_splits_with_moves_are_left_out_by_either_kind(kind: str) -> None:
    policy = parse_policy(yaml.safe_load(never_asked_entry("acme/x", [kind])), name="p")
    both, alone = (a_batch(*steps, kind="bundle_split") for steps in ((SPLITS, MOVES), (SPLITS,)))
    assert never_asked_about(both, policy) == f"{kind} of acme/x"
    assert (never_asked_about(alone, policy) is None) is (kind == "bundle_balance")


@cases(
    "declared, words",
    ("a member twice", {"primary": "east", "extensions": ["East"]}, "east is a member twice"),
    ("no name", {"primary": "ea st"}, "cluster name 'ea st': use letters"),
    ("a region of some", {"primary": "east", "extensions": ["west"], "regions": {"east": "eu"}}, "see west"),
    ("a region of another", {"primary": "east", "regions": {"east": "eu", "west": "eu"}}, "see west"),
    ("a tenant twice", {"primary": "east", "together": [["a", "b"], ["a"]]}, "a is in `together` twice"),
    ("a pattern", {"primary": "east", "together": [["a*"]]}, "'a\\*' is no tenant"),
    ("a member of another", {"primary": "south"}, "south is in two logical clusters"),
)
def test_a_logical_cluster_that_does_not_hold_up(declared: dict[str, Any], words: str) -> None:
    named = {"other": {"primary": "south"}, "orders": declared}
    with pytest.raises(PolicyError, match=words):
        parse_policy({"logical_clusters": {"named": named}}, name="policy")


def test_the_members_of_a_logical_cluster() -> None:
    """The primary is the first."""
    found = a_policy(logical_clusters={"named": {"orders": {"primary": "east", "extensions": ["west"]}}})
    assert found.logical_clusters.named["orders"].members == ("east", "west")


def a_group(**fields: object) -> dict[str, object]:
    return {"name": "shop", "namespaces": ["shop/.*"], "primary": [r"10\.0\.1\.[0-9]{1,3}"], **fields}


def test_a_group_of_brokers_is_the_isolation_policy_that_brokers_keep() -> None:
    """A wanted group is written as brokers keep it, with its numbers as text."""
    policy = Policy.model_validate({"brokers": {"groups": [a_group(min_available_brokers=3)]}})
    (group,) = policy.brokers.groups
    assert policy_in_words(group.isolation) == r"shop/.* on 10\.0\.1\.[0-9]{1,3} (3 at least)"
    assert group.isolation.auto_failover_policy == Failover(FailoverLimits("3", "80"))


@pytest.mark.parametrize(
    "fields",
    [
        {"primary": [r"\p{Alnum}+"]},
        {"primary": ["[a-z&&[^b]]"]},
        {"primary": ["(?<a>b)"]},
        {"primary": ["["]},
        {"primary": []},
        {"namespaces": []},
        {"namespaces": ["shop/.* "]},
        {"name": "a b"},
        {"name": "a/b"},
        {"min_available_brokers": 0},
    ],
    ids=str,
)
def test_a_group_that_brokers_would_read_otherwise_is_refused(fields: dict[str, object]) -> None:
    """Patterns that Java and Python read in different ways, and groups of nothing, are errors of the policy."""
    with pytest.raises(ValidationError):
        Policy.model_validate({"brokers": {"groups": [a_group(**fields)]}})
    with pytest.raises(ValidationError):
        Policy.model_validate({"brokers": {"groups": [a_group(), a_group()]}})
