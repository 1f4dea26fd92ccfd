"""Recipients of messages in a policy: where they may be sent to, and errors that name the place."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_steward.errors import PolicyError
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.schema import Policy

OPS = {"connection": "steward_notify_ops", "kind": "webhook"}


def a_document(**recipient: Any) -> dict[str, Any]:
    """A policy with one recipient."""
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


@pytest.mark.parametrize(
    "connection",
    ["pulsar_admin_east", "smtp_default", "steward_notify_", "https://evil.example", "steward_notify_a/b", " ", ""],
)
def test_only_connections_made_for_messages_are_sent_to(connection: str) -> None:
    """A recipient's connection is refused unless its id is `steward_notify_` followed by a valid name."""
    with pytest.raises(PolicyError, match=r"notify\.recipients\.ops\.connection.*steward_notify_"):
        parse_policy(a_document(connection=connection), name="x")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (a_document(url="https://evil.example"), r"notify\.recipients\.ops\.url: no such key$"),
        (a_document(event=["waiting"]), r"notify\.recipients\.ops\.event: no such key; did you mean events\?"),
        (a_document(events=["wating"]), r"notify\.recipients\.ops\.events\.0"),
        (a_document(kind="carrier pigeon"), r"notify\.recipients\.ops\.kind"),
        ({"notify": {"recipients": {"<b>": OPS}}}, "is no recipient's name"),
        ({"notify": {"recipient": {}}}, r"notify\.recipient: no such key; did you mean recipients\?"),
        (
            {"guards": {"windows": [{"opnes": "0 1 * * *"}]}},
            r"guards\.windows\.0\.opnes: no such key; did you mean opens",
        ),
    ],
)
def test_what_does_not_hold_up_is_named(document: dict[str, Any], words: str) -> None:
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
