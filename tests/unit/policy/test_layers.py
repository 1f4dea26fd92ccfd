"""Overrides: the nearest wins key by key, and what does not hold up is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pulsar_steward.checks.check import Scope
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.diagnose.runner import divided
from pulsar_steward.errors import PolicyError
from pulsar_steward.policy.layers import NARROW
from pulsar_steward.policy.load import load_policy, parse_policy
from pulsar_steward.policy.schema import SECTIONS, Policy
from tests.cases import row_by_row

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[3] / "docs" / "policy.example.yaml"

LAYERED = {
    "ack_holes": {"warning_percent": 60},
    "clusters": {"east": {"ack_holes": {"warning_percent": 55}, "apply": {"lease_seconds": 90}}},
    "tenants": {"acme": {"ack_holes": {"warning_percent": 40}, "consumer_fanout": {"warning_consumers": 3000}}},
    "namespaces": {
        "acme/orders": {"ack_holes": {"warning_percent": 30}},
        "acme/same": {"consumer_fanout": {"warning_consumers": 2000}},
        "other/one": {"ack_holes": {"warning_percent": 40}},
    },
}


def fanned(**more: Any) -> dict[str, Any]:
    """A document with thresholds of fan-out: 3000 critical at the top, and these layers."""
    return {"consumer_fanout": {"critical_consumers": 3000}} | more


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[str], list[str]]:
    """Faults of a file, each with line and column."""

    def told(text: str) -> list[str]:
        file = tmp_path / "p.yaml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(PolicyError) as caught:
            load_policy(file)
        return [str(each).removeprefix(f"{file}:") for each in caught.value.args]

    return told


@row_by_row(
    "cluster, namespace, percent",
    (None, None, 60),
    ("east", None, 55),
    ("west", None, 60),
    ("east", "acme/orders", 30),
    ("east", "acme/other", 40),
    ("east", "acme/same", 40),
    ("east", "other/one", 40),
    ("east", "other/two", 55),
    ("west", "other/two", 60),
)
def test_the_nearest_wins(cluster: str | None, namespace: str | None, percent: int) -> None:
    """Each key takes its value from the nearest layer that sets it: namespace, tenant, cluster, file or default."""
    policy = parse_policy(LAYERED, name="p")
    policy = policy.for_cluster(cluster) if cluster else policy
    policy = policy.for_namespace(namespace) if namespace else policy

    assert policy.ack_holes.warning_percent == percent
    assert policy.apply.lease_seconds == (90 if cluster == "east" else 60)
    assert policy.consumer_fanout.critical_consumers == Policy().consumer_fanout.critical_consumers


def test_a_cluster_keeps_what_its_namespaces_set_apart_and_nothing_of_others() -> None:
    """`for_cluster` drops the overrides of other clusters, so that they do not change the digest."""
    east, west = (parse_policy(LAYERED, name="p").for_cluster(name) for name in ("east", "west"))
    plain = parse_policy({key: value for key, value in LAYERED.items() if key != "clusters"}, name="p")

    assert west == plain
    assert west.digest == plain.digest
    assert east.clusters == {}
    assert east.namespaces == plain.namespaces
    assert east.for_cluster("west") is east


def test_a_policy_survives_json_with_its_overrides() -> None:
    """A policy with overrides keeps its values and its digest when it is written as JSON and read again."""
    policy = parse_policy(LAYERED, name="p").for_cluster("east")

    again = parse_policy(json.loads(policy.model_dump_json()), name="again")

    assert again == policy
    assert again.digest == policy.digest
    assert again.for_namespace("acme/orders").ack_holes.warning_percent == 30


@row_by_row(
    "layers, same",
    ({"tenants": {}}, True),
    ({"tenants": {"acme": {}}}, True),
    ({"tenants": {"acme": {"ack_holes": {}}}}, True),
    ({"tenants": {"acme": {"ack_holes": {"warning_percent": 41}}}}, False),
    ({"namespaces": {"acme/a": {"ack_holes": {"warning_percent": 41}}}}, False),
    ({"clusters": {"east": {"ack_holes": {"warning_percent": 41}}}}, False),
)
def test_the_digest_is_of_overrides_too(layers: dict[str, Any], *, same: bool) -> None:
    """Overrides that set a value change the policy's digest, and empty ones do not."""
    assert (parse_policy(layers, name="p").digest == Policy().digest) is same


@pytest.mark.parametrize("given", [40, 40.0, "40"])
def test_values_of_overrides_are_normalised(given: object) -> None:
    """A number in an override becomes the same integer, and has the same digest, from any notation."""
    policy = parse_policy({"tenants": {"acme": {"ack_holes": {"warning_percent": given}}}}, name="p")

    assert policy.tenants == {"acme": {"ack_holes": {"warning_percent": 40}}}
    assert json.loads(policy.model_dump_json())["tenants"]["acme"]["ack_holes"]["warning_percent"] == 40
    as_number = {"tenants": {"acme": {"ack_holes": {"warning_percent": 40}}}}
    assert policy.digest == parse_policy(as_number, name="p").digest


@row_by_row(
    "document, words",
    ({"tenant": {}}, "tenant: no such key; did you mean tenants?"),
    ({"tenants": []}, "tenants: has to hold sections"),
    ({"tenants": {"acme": None}}, "tenants.acme: has to hold sections"),
    ({"tenants": {"acme": {"ack_holes": 3}}}, "tenants.acme.ack_holes: has to hold keys"),
    ({"tenants": {7: {}}}, "tenants.7: is not a tenant's name"),
    ({"tenants": {"acme/orders": {}}}, "tenants.acme/orders: is not a tenant's name"),
    ({"namespaces": {"acme": {}}}, "namespaces.acme: is not `tenant/namespace`"),
    ({"clusters": {"../east": {}}}, "clusters.../east: is not a cluster's name"),
    ({"tenants": {"acme": {"ack_hole": {}}}}, "tenants.acme.ack_hole: no such key; did you mean ack_holes?"),
    ({"clusters": {"east": {"aply": {}}}}, "clusters.east.aply: no such key; did you mean apply?"),
    ({"clusters": {"east": {"tenants": {}}}}, "clusters.east.tenants: `tenants` stands at the top"),
    ({"tenants": {"acme": {"tc_skew": {}}}}, "tenants.acme.tc_skew: cannot differ by tenant"),
    ({"namespaces": {"acme/a": {"apply": {}}}}, "namespaces.acme/a.apply: cannot differ by namespace"),
    (
        {"namespaces": {"acme/a": {"ack_holes": {"warning_percents": 3}}}},
        "namespaces.acme/a.ack_holes.warning_percents: no such key; did you mean warning_percent?",
    ),
    (
        {"namespaces": {"acme/a": {"ack_holes": {"warning_percent": 101}}}},
        "namespaces.acme/a.ack_holes.warning_percent: has to be 100 or less",
    ),
    (
        {"clusters": {"east": {"brokers": {"draining": ["a:1", 5]}}}},
        "clusters.east.brokers.draining.1: has to be a text",
    ),
)
def test_what_does_not_hold_up_in_an_override_is_named(document: dict[str, Any], words: str) -> None:
    """An invalid override is refused with its place, the reason and, for a misspelt key, the nearest valid one."""
    with pytest.raises(PolicyError) as caught:
        parse_policy(document, name="p")

    assert str(caught.value).startswith(f"p: {words}")


@row_by_row(
    "document, troubles",
    (fanned(), []),
    ({"consumer_fanout": {"critical_consumers": 1999}}, ["consumer_fanout"]),
    (fanned(tenants={"acme": {"consumer_fanout": {"warning_consumers": 3000}}}), []),
    (fanned(tenants={"acme": {"consumer_fanout": {"warning_consumers": 3001}}}), ["tenants.acme.consumer_fanout"]),
    (
        fanned(
            tenants={"acme": {"consumer_fanout": {"warning_consumers": 2900}}},
            namespaces={"acme/a": {"consumer_fanout": {"critical_consumers": 2899}}},
        ),
        ["namespaces.acme/a.consumer_fanout"],
    ),
    (
        fanned(
            tenants={"acme": {"consumer_fanout": {"warning_consumers": 2900}}},
            namespaces={"other/a": {"consumer_fanout": {"critical_consumers": 2899}}},
        ),
        [],
    ),
    (
        fanned(
            clusters={"east": {"consumer_fanout": {"critical_consumers": 2500}}, "west": {"admin": {}}},
            namespaces={"acme/a": {"consumer_fanout": {"warning_consumers": 2600}}},
        ),
        ["namespaces.acme/a.consumer_fanout"],
    ),
    ({"consumer_fanout": {"critical_consumers": 1}, "tenants": {"a": {"consumer_fanout": {}}}}, ["consumer_fanout"]),
)
def test_thresholds_are_in_order_after_merging_too(document: dict[str, Any], troubles: list[str]) -> None:
    try:
        parse_policy(document, name="p")
        told = []
    except PolicyError as error:
        told = [each.partition(": warning_consumers (")[0] for each in str(error).removeprefix("p: ").split("; ")]
    assert told == troubles


def test_thresholds_without_an_order_are_pairs_that_are_there() -> None:
    for section in SECTIONS.values():
        free = {f"{kind}_{name}" for name in getattr(section, "UNORDERED", ()) for kind in ("warning", "critical")}
        assert free <= set(section.model_fields)
    shares = {"warning_share_percent": 30, "critical_share_percent": 5}
    assert parse_policy({"ledger_switch_slow": shares}, name="p").ledger_switch_slow.critical_share_percent == 5


def test_a_policy_with_wrong_overrides_cannot_be_made() -> None:
    """A policy that is made in code with a wrong override is refused with the override's place."""
    with pytest.raises(ValidationError, match=r"tenants\.acme\.tc_skew: cannot differ by tenant"):
        Policy(tenants={"acme": {"tc_skew": {"cooldown_minutes": 3}}})


def test_every_trouble_of_a_file_is_told_with_line_and_column(lines: Callable[[str], list[str]]) -> None:
    text = """\
ack_holes: {warning_percnt: 5}
apply:
  lease_seconds: soon
tenants:
  acme:
    gc_pressure: {}
    ack_holes:
      warning_percent: -1
brokers: {draining: ["a:80", 1]}
"""
    assert [each[: each.index(": ")] for each in lines(text)] == ["1:13", "3:18", "6:5", "8:24", "9:30"]


@row_by_row(
    "text, told",
    ("admin: {}\napply: {}\nadmin: {}\n", ["3:1: admin: stands twice"]),
    ("apply:\n  lease_seconds: 9\n  'lease_seconds': 8\n", ["3:3: lease_seconds: stands twice"]),
    (
        "tenants:\n  a: {}\n  b: {ack_holes: {warning_percent: 2, warning_percent: 3}}\n  a: {}\n",
        ["3:39: warning_percent: stands twice", "4:3: a: stands twice"],
    ),
    ("apply: {lease_seconds: 0600}\n", ["1:24: 0600: is the number 384 to YAML"]),
    (
        "approval: {valid_minutes: 1:30}\napply: {protected_namespaces: [0x10]}\n",
        ["1:27: 1:30: is the number 90 to YAML", "2:32: 0x10: is the number 16 to YAML", "2:32: apply.protected_n"],
    ),
    ("a: [\n", ["2:1: cannot be read as YAML"]),
    ("a: 1\n--- \nb: 1\n", ["2:1: cannot be read as YAML"]),
    ("a: !!python/name:os.system\n", ["1:4: cannot be read as YAML"]),
    ("apply: &a {lease_seconds: *a}\n", ["1:8: apply.lease_seconds: "]),
    ("tenants: &a {acme: *a}\n", ["1:14: tenants.acme.acme: no such key"]),
)
def test_keys_that_stand_twice_odd_numbers_and_broken_yaml(
    lines: Callable[[str], list[str]], text: str, told: list[str]
) -> None:
    found = lines(text)

    assert len(found) == len(told)
    assert [each[: len(words)] for each, words in zip(found, told, strict=True)] == told


@pytest.mark.parametrize("text", ["a: 2026-13-45\n", "[" * 3000, "\x00"])
def test_what_yaml_stumbles_over_is_a_policy_error(lines: Callable[[str], list[str]], text: str) -> None:
    """A file with an impossible date, very deep nesting or a NUL is refused as it cannot be read as YAML."""
    (line,) = lines(text)

    assert "cannot be read as YAML" in line


def test_aliases_and_merge_keys_may_be_used(tmp_path: Path) -> None:
    """YAML aliases and merge keys may be used, and a key beside `<<` does not count as a duplicate."""
    file = tmp_path / "p.yaml"
    a, c = "a: &a {ack_holes: &h {warning_percent: 3}}", "c: {ack_holes: {<<: *h, warning_percent: 4}}"
    file.write_text(f"tenants:\n  {a}\n  b: *a\n  {c}\n")

    policy = load_policy(file)

    assert [policy.for_namespace(f"{each}/x").ack_holes.warning_percent for each in "abcd"] == [3, 3, 4, 50]


def test_the_example_of_the_documentation_holds_up() -> None:
    """The example policy of the documentation loads, and its overrides take effect."""
    east = load_policy(EXAMPLE).for_cluster("east")

    assert east.brokers.draining == ("broker-7:8080",)
    assert east.for_namespace("iot/alarms").subscription_stalled.minimum_due_messages == 100
    assert east.for_namespace("iot/alarms").consumer_fanout.warning_consumers == 6000
    assert east.for_namespace("iot/sensors").subscription_stalled.minimum_due_messages == 100_000
    assert east.for_namespace("payments/live").backlog_near_quota.critical_percent == 70
    assert east.for_namespace("a/b").consumer_fanout.warning_consumers == 4000


def test_the_documentation_lists_what_namespaces_may_set_apart() -> None:
    page = (EXAMPLE.parent / "policy.md").read_text(encoding="utf-8")
    table = page.partition("## What tenants and namespaces may set")[2].partition("\n## ")[0]

    assert {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")} == NARROW
    assert EXAMPLE.read_text(encoding="utf-8") in page


def test_every_scope_is_one_of_a_section() -> None:
    """Every check names a known section, and only checks of namespaces read further sections."""
    for info in BY_ID.values():
        assert info.section in SECTIONS
        assert set(info.reads) <= NARROW
        assert not info.reads or info.scope is Scope.NAMESPACE


WARNINGS = {
    "ack_holes": "warning_percent",
    "consumer_fanout": "warning_consumers",
    "producer_fanout": "warning_producers",
}


@row_by_row(
    "sections, values, names",
    (
        ("ack_holes",),
        {"acme/orders": [30], "acme/x": [40], "other/one": [40], "o/o": [60]},
        [["acme", "other/one"], ["acme/orders"]],
    ),
    (("consumer_fanout",), {"acme/x": [3000], "acme/same": [2000], "o/o": [2000]}, [["acme"]]),
    (("producer_fanout",), {"acme/orders": [1000], "o/o": [1000]}, []),
    (
        ("producer_fanout", "ack_holes"),
        {"acme/orders": [1000, 30], "o/o": [1000, 60]},
        [["acme", "other/one"], ["acme/orders"]],
    ),
)
def test_namespaces_divide_by_the_values_in_force(
    sections: tuple[str, ...], values: dict[str, list[int]], names: list[list[str]]
) -> None:
    policy = parse_policy(LAYERED, name="p").for_cluster("west")
    division = divided(policy, sections)

    assert [division.names(part) for part in range(1, len(division.policies))] == names
    for namespace, expected in values.items():
        own, told = policy.for_namespace(namespace), division.policies[division.part_of(namespace)]
        assert [getattr(told, each) for each in sections] == [getattr(own, each) for each in sections]
        assert [getattr(getattr(told, each), WARNINGS[each]) for each in sections] == expected


NEVER_ASKED: dict[str, Any] = {
    "approval": {"never_ask": ["bundle_split"]},
    "tenants": {"acme": {"approval": {"never_ask": ["retention"]}}},
    "namespaces": {"acme/orders": {"approval": {"never_ask": ["retention", "backlog_quota"]}}},
}


@row_by_row(
    "namespace, never",
    ("other/one", ("bundle_split",)),
    ("acme/carts", ("retention",)),
    ("acme/orders", ("retention", "backlog_quota")),
)
def test_what_is_never_asked_differs_by_namespace(namespace: str, never: tuple[str, ...]) -> None:
    """`never_ask` comes from the nearest layer, and the approval section's other keys from the cluster."""
    policy = parse_policy({**NEVER_ASKED, "approval": {**NEVER_ASKED["approval"], "valid_minutes": 5}}, name="p")
    own = policy.for_namespace(namespace).approval
    assert (own.never_ask, own.valid_minutes) == (never, 5)


def test_of_an_approval_nothing_else_differs_by_namespace(lines: Callable[[str], list[str]]) -> None:
    """Only `never_ask` of the approval section can differ by namespace, and it accepts known kinds except rollback."""
    assert lines("namespaces:\n  a/b:\n    approval:\n      valid_minutes: 5\n") == [
        "4:7: namespaces.a/b.approval.valid_minutes: cannot differ by namespace: of this section only never_ask can"
    ]
    assert "no kind of batch" in lines("tenants: {a: {approval: {never_ask: [everything]}}}")[0]
    assert "a rollback is asked because a person wanted it" in lines("approval: {never_ask: [rollback]}")[0]
