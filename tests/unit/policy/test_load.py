"""Policies: the defaults, a file's keys over them, and errors that name what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from pulsar_steward.errors import PolicyError
from pulsar_steward.policy.load import load_policy, parse_policy
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pathlib import Path

UNIT_WORDS = """
seconds minutes milliseconds minute hour hours partitions percent mean others bytes mebibytes megabytes attempts batches
redirects snapshots coordinators bundles bundle topics subscriptions subscription consumers
producers clients messages message entries buckets nodes node brokers broker cluster namespaces
signs suspects step steps second tasks operations collections switches threads requests files moves changes turnovers
splits bookies connections days transactions processors ledgers people throttlings limits
"""
UNITS = frozenset(UNIT_WORDS.split())
"""What a whole number counts; one of these words is in every such key's name."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Path at which a test may write a policy."""
    return tmp_path / "policy.yaml"


def test_without_a_file_the_defaults_hold(file: Path) -> None:
    """The shipped defaults hold if no path is given, and a path without a file is an error."""
    assert load_policy(None) == Policy()
    with pytest.raises(PolicyError, match="no such file"):
        load_policy(file)


def test_a_key_takes_the_place_of_its_default_only(file: Path) -> None:
    """A key in the file replaces its own default, and all other keys keep theirs."""
    file.write_text("tc_skew:\n  warning_spread_coordinators: 5\nbrokers:\n  draining: ['a:8080', 'b:8080']\n")
    loaded = load_policy(file)
    assert loaded.tc_skew.warning_spread_coordinators == 5
    assert loaded.tc_skew.cooldown_minutes == Policy().tc_skew.cooldown_minutes
    assert loaded.brokers.draining == ("a:8080", "b:8080")
    assert loaded.apply == Policy().apply


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"tc_skw": {}}, "tc_skw: no such key; did you mean tc_skew?"),
        ({"zzz": 1}, "zzz: no such key$"),
        ({"tc_skew": {"cooldown_minute": 5}}, r"tc_skew.cooldown_minute: .* cooldown_minutes\?"),
        ({"apply": {"lease_second": 9}}, r"apply.lease_second: .* lease_seconds\?"),
        ({"admin": {"verify_everything": True}}, "admin.verify_everything: no such key$"),
        ({"admin": {"redirects": "many"}}, "admin.redirects: .* valid integer"),
        ({"admin": {"redirects": 2.5}}, "admin.redirects: .* valid integer"),
        ({"admin": {"redirects": None}}, "admin.redirects: .* valid integer"),
        ({"admin": {"redirects": 0}}, "admin.redirects: .* greater than or equal to 1"),
        ({"admin": {"redirects": 99}}, "admin.redirects: .* equal to 20"),
        ({"tc_skew": {"critical_share_percent": 101}}, "tc_skew.critical_share_percent: .* equal to 100"),
        ({"brokers": {"draining": "a:8080"}}, "brokers.draining: .* valid tuple"),
        ({"brokers": {"draining": [8080]}}, r"brokers.draining.0: .* valid string"),
        ({"approval": {"decide_by": "plan"}}, "approval.decide_by: .* 'namespace', 'tenant' or 'kind'"),
        ({"approval": {"decide_by_kind": {"retention": "all"}}}, "decide_by_kind.retention: .* 'tenant' or 'kind'"),
        ({"approval": {"decide_by_kind": {"tc_balance": "kind"}}}, "'tc_balance' is always asked about by itself"),
        ({"approval": {"decide_by_kind": {"retentions": "kind"}}}, "'retentions' is no kind of batch"),
        ({"approval": {"most_steps": 0}}, "approval.most_steps: .* greater than or equal to 1"),
        ({"approval": {"most_steps": "all"}}, "approval.most_steps: .* valid integer"),
        ({"apply": 5}, "apply: .* valid dictionary"),
        ({"apply": None}, "apply: .* valid dictionary"),
        ([], "the document: .* valid dictionary"),
        ("text", "the document: .* valid dictionary"),
    ],
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
    """The sections of a policy, and the models within them, by place."""
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
