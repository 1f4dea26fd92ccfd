"""A word in a policy that is not understood is an error, and what is protected by name or pattern stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import PolicyError
from pulsar_steward.guards.evaluate import evaluate
from pulsar_steward.guards.window_times import closing
from pulsar_steward.policy.guards import MaintenanceWindow
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.recorded import RecordedPolicy
from tests.builders import a_look, a_move, a_policy, a_step
from tests.unit.guards.test_subscriptions import a_step_of, seen

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy

# -- names in a policy


def policy_of(folder: Path, text: str) -> Policy:
    file = folder / "policy.yaml"
    file.write_text(text, encoding="utf-8")
    return load_policy(file)


REFUSED = {
    "apply: {protected_namespaces: [%s]}": [
        ("shop", "write shop/*"),
        ("shop/", "write shop/*"),
        ("shop/orders/", "is no namespace"),
        ("/shop/orders", "is no namespace"),
        ("shop/orders/x", "is no namespace"),
        ("persistent://shop/orders", "is no namespace"),
        ('"shop/orders "', "begins or ends with a blank"),
        ('"shop /orders"', "is no namespace"),
        ('"shop/orders\\u200b"', "cannot be seen"),
        ('"shop/*\\n"', "cannot be seen"),
        ('"*"', "is no namespace"),
        ('"shop/[ab]"', "is no namespace"),
        ('"shop/o?ders"', "is no namespace"),
        ('""', "is empty"),
        ("1", "has to be a text"),
    ],
    "subscriptions: {protected_topics: [%s]}": [
        ('"persistent://shop/orders/paid-partition-3"', "write persistent://shop/orders/paid,"),
        ('"persistent://shop/orders/paid-partition-*"', "write persistent://shop/orders/paid,"),
        ("shop/orders/paid", "no full name of a topic"),
        ('"persistent://shop/orders"', "no full name of a topic"),
        ('"persistent://shop/orders/"', "no full name of a topic"),
        ('"persistent://shop/*"', "no full name of a topic"),
        ('"persistent://shop/orders/paid/"', "no full name of a topic"),
        ('"Persistent://shop/orders/paid"', "no full name of a topic"),
        ('"persistent://shop/orders/paid "', "begins or ends with a blank"),
        ('"persistent://shop/orders/[ab]"', "only * is"),
        ('"persistent://shop/orders/(a|b)"', "only * is"),
    ],
    "subscriptions: {protected_subscriptions: [%s]}": [
        ('"aud?"', "only * is"),
        ('"^aud.*$"', "only * is"),
        ('"aud[0-9]"', "only * is"),
        ('" audit"', "begins or ends with a blank"),
        ('"aud\\u00adit"', "cannot be seen"),
    ],
    "brokers: {draining: [%s]}": [
        ("broker-7", "host:webport"),
        ('"broker-7:8080/"', "host:webport"),
        ('"http://broker-7:8080"', "host:webport"),
        ('"broker-*:8080"', "no patterns of brokers"),
        ('"broker-7:8080 "', "begins or ends with a blank"),
        ('"broker-7:8080,broker-8:8080"', "host:webport"),
    ],
    "approval: {assigned_users: [%s]}": [
        ('"alice "', "begins or ends with a blank"),
        ('"alice\\t"', "cannot be seen"),
        ('"ali\\u200bce"', "cannot be seen"),
        ('"*"', "an empty list is everyone"),
        ('""', "is empty"),
    ],
    "approval: {assigned_users_by_kind: {tc_balance: [%s]}}": [('" alice"', "begins or ends with a blank")],
    "approval: {by_risk: {high: {users: [%s]}}}": [('"alice "', "begins or ends with a blank")],
    "approval: {never_ask: [%s]}": [("retentions", "no kind of batch"), ('"*"', "no kind of batch")],
    "guards: {versions_tried_here: [%s]}": [('"4.*"', "no version of Pulsar"), ('"4.0 "', "no version of Pulsar")],
    "events: {topic: %s}": [
        ("steward-events", "no full name of a topic"),
        ('"persistent://public/default/*"', "one topic is meant"),
    ],
    "namespaces: {%s: {approval: {never_ask: [retention]}}}": [
        ("shop/*", "* is not understood here"),
        ("shop/orders/", "is not `tenant/namespace`"),
        ("shop", "is not `tenant/namespace`"),
    ],
    "tenants: {%s: {approval: {never_ask: [retention]}}}": [
        ("sh*p", "* is not understood here"),
        ("shop/", "is not a"),
    ],
}


@pytest.mark.parametrize(
    ("template", "name", "words"),
    [(template, name, words) for template, names in REFUSED.items() for name, words in names],
)
def test_a_name_that_can_be_none_is_an_error_with_its_place(
    tmp_path: Path, template: str, name: str, words: str
) -> None:
    """A policy that names what cannot be meant is not valid, and the error says where, and how it is written."""
    with pytest.raises(PolicyError) as error:
        policy_of(tmp_path, template % name)
    (told,) = error.value.args
    assert f"policy.yaml:1:{template.index('%s') + 1}: " in told
    assert words in told


def vetoes(step: Step, policy: Policy) -> list[str]:
    facts, _ = seen() if "subscription" in step.change.__struct_fields__ else a_look()
    return [result.guard for result in evaluate(step, facts, policy) if not result.passed]


@pytest.mark.parametrize(
    ("pattern", "namespace"),
    [
        ("shop/orders", "shop/orders"),
        ("shop/*", "shop/orders"),
        ("*/orders", "shop/orders"),
        ("*/*", "shop/orders"),
        ("Shop/Orders", "Shop/Orders"),
        ("pulsar/*", "pulsar/system"),
    ],
)
def test_a_namespace_that_a_name_or_pattern_protects_is_not_changed(pattern: str, namespace: str) -> None:
    """A step in a namespace is vetoed where an entry of the policy stands for it, and not where it does not."""
    policy = a_policy(apply={"protected_namespaces": [pattern]})
    assert vetoes(a_step(a_move(namespace=namespace)), policy) == ["protected"]
    assert vetoes(a_step(a_move(namespace="other/place")), policy) == (["protected"] if pattern == "*/*" else [])


TOPIC = "persistent://shop/events/orders"


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("protected_topics", TOPIC),
        ("protected_topics", "persistent://shop/events/*"),
        ("protected_topics", "persistent://*/events/ord*"),
        ("protected_subscriptions", "audit"),
        ("protected_subscriptions", "aud*"),
        ("protected_subscriptions", "*"),
    ],
)
@pytest.mark.parametrize("topic", [TOPIC, f"{TOPIC}-partition-3"])
def test_a_subscription_that_a_name_or_pattern_protects_is_not_deleted(key: str, pattern: str, topic: str) -> None:
    """A deletion is vetoed where an entry stands for its topic, also for a partition of it, or for its name."""
    _, policy = seen({key: [pattern]})
    assert vetoes(a_step_of(topic), policy) == ["subscription_expendable"]
    _, other = seen({key: ["persistent://shop/events/order"] if "topics" in key else ["Audit"]})
    assert vetoes(a_step_of(topic), other) == []


@pytest.mark.parametrize(
    ("then", "now", "looser"),
    [
        (["shop/orders"], ["shop/*"], False),
        (["shop/or*"], ["shop/*"], False),
        (["shop/*"], ["shop/orders"], True),
        (["shop/*"], ["*/orders"], True),
        (["shop/orders", "shop/bills"], ["shop/o*"], True),
    ],
)
def test_a_policy_that_protects_less_is_looser(then: list[str], now: list[str], *, looser: bool) -> None:
    """A name may be replaced by a pattern that stands for it, and not a pattern by a name."""
    before, after = (a_policy(apply={"protected_namespaces": names}) for names in (then, now))
    assert bool(loosened(after, RecordedPolicy.of(before))) is looser


# -- windows


@pytest.mark.parametrize(
    "opens",
    [
        "0 0 31 2 *",
        "0 0 30-31 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 29 2 1#1",
        "0 0 1 1 * 0 2020",
        "* * * * * *",
        "@daily",
        "@reboot",
        "R R * * *",
        "0 R(1-4) * * *",
        "H 3 * * *",
        "every night",
        "",
    ],
)
def test_a_window_that_never_opens_or_opens_at_random_is_an_error(tmp_path: Path, opens: str) -> None:
    """A policy whose window cannot open, or at times that nobody can tell, is not valid, and the place is said."""
    with pytest.raises(PolicyError, match=r"policy\.yaml:1:28: guards\.windows\.0\.opens: '"):
        policy_of(tmp_path, f"guards: {{windows: [{{opens: '{opens}', minutes: 60}}]}}")


@pytest.mark.parametrize("limit", ["true", "off", "yes", "no"])
def test_a_limit_that_is_no_number_is_an_error(tmp_path: Path, limit: str) -> None:
    """A policy that says yes or no in the place of a number is not valid, and makes no limit of 1 or 0 of it."""
    with pytest.raises(PolicyError, match=r"policy\.yaml:1:26: guards\.circle_minutes: .* is no number"):
        policy_of(tmp_path, f"guards: {{circle_minutes: {limit}}}")


@pytest.mark.parametrize(
    ("minutes", "zone"), [("0", "UTC"), ("-60", "UTC"), ("true", "UTC"), ("60", "europe/berlin"), ("60", "CET-1")]
)
def test_a_window_without_a_length_or_a_zone_is_an_error(tmp_path: Path, minutes: str, zone: str) -> None:
    """A policy whose window lasts no time, or is in no known time zone, is not valid."""
    with pytest.raises(PolicyError, match=r"policy\.yaml:1:"):
        policy_of(tmp_path, f"guards: {{windows: [{{opens: '0 1 * * *', minutes: {minutes}, time_zone: '{zone}'}}]}}")


NIGHTS = {
    "Europe/Berlin": ("2026-10-25", "2026-03-29"),
    "America/New_York": ("2026-11-01", "2026-03-08"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "UTC": ("2026-05-05",),
}
A_MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(("zone", "night"), [(zone, night) for zone, nights in NIGHTS.items() for night in nights])
@pytest.mark.parametrize("opens", ["30 2 * * *", "30 1 * * *", "0 0 * * *", "45 23 * * *"])
def test_a_window_lasts_its_minutes_in_every_night(zone: str, night: str, opens: str) -> None:
    """A window of 60 minutes a day is open for 60 minutes from noon to noon, also where clocks go back or forward."""
    window = MaintenanceWindow(opens=opens, minutes=60, time_zone=zone)
    noon = datetime.fromisoformat(f"{night}T12:00").replace(tzinfo=window.zone).astimezone(UTC)
    before = (noon.astimezone(window.zone) - timedelta(days=1)).astimezone(UTC)
    minutes = (noon - before) // A_MINUTE
    assert sum(closing((window,), before + A_MINUTE * number) is not None for number in range(minutes)) == 60
