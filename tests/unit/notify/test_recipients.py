"""Messages by Airflow's connections: mail by its provider, and what is said where one of the two is missing."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import ConfigurationError, NotDelivered
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.notify.addresses import Address, AddressFound, Asked
from pulsar_steward.notify.compose import composed
from pulsar_steward.notify.gather import Route
from pulsar_steward.orchestration import recipients
from pulsar_steward.orchestration.airflow_answers import addresses
from pulsar_steward.policy.notify import RecipientKind
from tests.cases import row_by_row
from tests.unit.notify.notices import AIRFLOW, NASTY, a_notice

if TYPE_CHECKING:
    from tests.unit.notify.sinks import HttpSink, SmtpSink

CONNECTION = "steward_notify_ops"
MESSAGE = composed(
    "id-1", [a_notice(Occasion.FAILED, severity=Severity.CRITICAL, subject="failed: <b>x</b> ä", text=NASTY)], AIRFLOW
)


def route(kind: RecipientKind) -> Route:
    """A way to a recipient."""
    return Route("ops", CONNECTION, kind)


def connected(patch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Adds the connection to Airflow."""
    patch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps({"conn_type": "generic", **fields}))


def provided(patch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Puts modules in place of a provider's; names have ``__`` for dots."""
    for name, content in modules.items():
        module = ModuleType(name.replace("__", "."))
        vars(module).update(content)
        patch.setitem(sys.modules, module.__name__, module)


def test_a_webhook_by_its_connection(http: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook's host, port, schema and password come from its Airflow connection."""
    connected(monkeypatch, host="127.0.0.1", port=http.port, schema="http", password="token")
    recipients.send(route(RecipientKind.WEBHOOK), MESSAGE)
    [posted] = http.posted
    assert (posted.body["subject"], posted.headers["Authorization"]) == (MESSAGE.subject, "Bearer token")


def test_a_mail_by_the_provider(smtp: SmtpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """One mail goes to all addresses with the message's id, and names in its HTML are escaped."""
    mailing(monkeypatch, smtp)
    recipients.send(route(RecipientKind.SMTP), MESSAGE)
    [(to, mail)] = smtp.mails
    assert to == ["a@example.org", "b@example.org"]
    assert (mail["Subject"], mail["Message-ID"]) == (MESSAGE.subject, "<id-1@pulsar-steward>")
    [part] = [each for each in mail.walk() if each.get_content_type() == "text/html"]
    body = part.get_content()
    assert "a/&lt;b&gt;&amp;&quot;x&quot;" in body
    assert f'<a href="{MESSAGE.link}">' in body


def test_a_mail_that_is_not_taken_is_tried_once(smtp: SmtpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    mailing(monkeypatch, smtp)
    smtp.refuses = True
    with pytest.raises(NotDelivered, match="SMTPDataError") as caught:
        recipients.send(route(RecipientKind.SMTP), MESSAGE)
    assert "secret" not in str(caught.value)
    assert smtp.tries == 1


def mailing(patch: pytest.MonkeyPatch, smtp: SmtpSink, **extra: Any) -> None:
    """Adds a connection to the mail server."""
    given = {
        "from_email": "steward@example.org",
        "to": ["a@example.org", "b@example.org"],
        "disable_ssl": True,
        "disable_tls": True,
    }
    connected(patch, conn_type="smtp", host="127.0.0.1", port=smtp.port, extra={**given, **extra})


@pytest.mark.parametrize("missing", ["to", "from_email"])
def test_a_mail_needs_addresses(smtp: SmtpSink, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """A mail connection without a sender or without recipients is a configuration error."""
    mailing(monkeypatch, smtp, **{missing: ""})
    with pytest.raises(ConfigurationError, match=f"{CONNECTION}.*`to` and `from_email`"):
        recipients.send(route(RecipientKind.SMTP), MESSAGE)


@row_by_row(
    "kind, module",
    (RecipientKind.SMTP, "airflow.providers.smtp.hooks.smtp"),
    (RecipientKind.SLACK, "airflow.providers.slack.hooks.slack_webhook"),
    (RecipientKind.PAGERDUTY, "airflow.providers.pagerduty.hooks.pagerduty_events"),
    (RecipientKind.APPRISE, "airflow.providers.apprise.hooks.apprise"),
)
def test_a_missing_provider_is_named(
    smtp: SmtpSink, monkeypatch: pytest.MonkeyPatch, kind: RecipientKind, module: str
) -> None:
    """The error for a missing Airflow provider names the extra of Steward that installs it."""
    mailing(monkeypatch, smtp)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"pulsar-steward\[{kind}\]"):
        recipients.send(route(kind), MESSAGE)


def test_a_missing_connection_is_named() -> None:
    """Sending fails with an error that names the connection when Airflow does not have it."""
    with pytest.raises(ConfigurationError, match=CONNECTION):
        recipients.send(route(RecipientKind.WEBHOOK), MESSAGE)


def test_what_slack_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack gets names as plain text, and the error of a failed call does not repeat what its client said."""
    given: list[dict[str, Any]] = []

    class Hook:
        def __init__(self, **_: Any) -> None: ...

        def send(self, **fields: Any) -> None:
            given.append(fields)
            raise RuntimeError("https://hooks.example.org/secret")

    connected(monkeypatch, password="token")
    provided(monkeypatch, airflow__providers__slack__hooks__slack_webhook={"SlackWebhookHook": Hook})
    with pytest.raises(NotDelivered, match="RuntimeError") as caught:
        recipients.send(route(RecipientKind.SLACK), MESSAGE)
    assert "secret" not in str(caught.value)
    [fields] = given
    assert fields["text"] == "failed: &lt;b&gt;x&lt;/b&gt; ä"
    assert {block["text"]["type"] for block in fields["blocks"]} == {"plain_text"}
    assert NASTY in "".join(block["text"]["text"] for block in fields["blocks"])


def test_what_pagerduty_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """PagerDuty gets the message's id as its key for duplicates, with severity, subject and link."""
    given: list[dict[str, Any]] = []
    hook = SimpleNamespace(send_event=lambda **fields: given.append(fields))
    connected(monkeypatch, password="key")
    provided(
        monkeypatch, airflow__providers__pagerduty__hooks__pagerduty_events={"PagerdutyEventsHook": lambda **_: hook}
    )
    recipients.send(route(RecipientKind.PAGERDUTY), MESSAGE)
    [fields] = given
    assert (fields["dedup_key"], fields["severity"], fields["summary"]) == ("id-1", "critical", MESSAGE.subject)
    assert fields["links"] == [{"href": MESSAGE.link, "text": "Airflow"}]


@pytest.mark.parametrize("taken", [True, False, None])
def test_apprise_has_to_say_yes(monkeypatch: pytest.MonkeyPatch, *, taken: bool | None) -> None:
    """A message by Apprise counts as delivered only when Apprise returns true."""
    given: list[dict[str, Any]] = []

    class Services:
        def notify(self, **fields: Any) -> bool | None:
            given.append(fields)
            return taken

    hook = SimpleNamespace(set_config_from_conn=lambda **_: None, get_connection=lambda _: None)
    connected(monkeypatch)
    provided(
        monkeypatch,
        apprise={"Apprise": Services},
        airflow__providers__apprise__hooks__apprise={"AppriseHook": lambda **_: hook},
    )
    if taken:
        recipients.send(route(RecipientKind.APPRISE), MESSAGE)
    else:
        with pytest.raises(NotDelivered, match=CONNECTION):
            recipients.send(route(RecipientKind.APPRISE), MESSAGE)
    assert (given[0]["notify_type"], given[0]["title"]) == ("failure", MESSAGE.subject)


def test_doctor_is_told_addresses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor gets only the address of a connection, and the trouble and remedy for one that is missing."""
    connected(monkeypatch, host="hooks.example.org", schema="https", password="secret-password")
    missing = Asked("steward_notify_missing", RecipientKind.WEBHOOK)
    found, lost = addresses([Asked(CONNECTION, RecipientKind.WEBHOOK), missing])
    assert found == AddressFound(CONNECTION, Address("hooks.example.org", 443, tls=True))
    assert missing.connection in lost.trouble
    assert "AIRFLOW_CONN_STEWARD_NOTIFY_MISSING" in lost.remedy


def test_what_is_missing_beside_the_connection_is_found(smtp: SmtpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    mailing(monkeypatch, smtp, to="")
    [unaddressed] = addresses([Asked(CONNECTION, RecipientKind.SMTP)])
    assert "`to` and `from_email`" in unaddressed.trouble
    assert unaddressed.remedy.startswith("mend the connection")
    mailing(monkeypatch, smtp)
    monkeypatch.setitem(sys.modules, "airflow.providers.smtp.hooks.smtp", None)
    [unsent] = addresses([Asked(CONNECTION, RecipientKind.SMTP)])
    assert "smtp" in unsent.trouble
    assert "pip install 'pulsar-steward[smtp]'" in unsent.remedy


def test_one_connection_that_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that cannot be read is reported without its content, and the other connections are still read."""
    monkeypatch.setenv("AIRFLOW_CONN_STEWARD_NOTIFY_TORN", '{"password": "secret-password"')
    connected(monkeypatch, host="hooks.example.org", schema="https")
    torn, found = addresses([Asked(name, RecipientKind.WEBHOOK) for name in ("steward_notify_torn", CONNECTION)])
    assert torn.trouble == "Airflow has no connection 'steward_notify_torn' that it can read here"
    assert "secret-password" not in f"{torn}"
    assert "AIRFLOW__CORE__FERNET_KEY" in torn.remedy
    assert found.address == Address("hooks.example.org", 443, tls=True)
