"""Sending of messages through Airflow's connections and providers; a provider is imported when a message needs it."""

from __future__ import annotations

import html
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError, NotDelivered, StewardError
from pulsar_steward.model.finding import Severity
from pulsar_steward.notify.addresses import ConnectionFields, smtp_address, webhook_of
from pulsar_steward.notify.webhook import SECONDS, post, reason_of
from pulsar_steward.orchestration.connections import connection_named
from pulsar_steward.policy.notify import RecipientKind
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.notify.compose import Message
    from pulsar_steward.notify.gather import Route

MAX_BLOCK = 3000
"""Characters of one block of a Slack message; Slack refuses more."""

MAX_BLOCKS = 10

MAX_SUMMARY = 1024
"""Characters of a PagerDuty event's summary; PagerDuty refuses more."""

_APPRISE_TYPES = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}


def send(route: Route, message: Message) -> None:
    """Sends a message; returns once the recipient took it.

    Raises:
        NotDelivered: If the recipient did not take it; the error's text contains no secret.
        ConfigurationError: If the connection is missing or not usable, or the provider is not installed.
    """
    fields = fields_of(route.connection)
    try:
        SENDERS[route.kind](fields, message)
    except StewardError:
        raise
    except Exception as error:  # noqa: BLE001 - providers raise what they like, and its text may hold a secret address
        raise NotDelivered(f"{route.kind} by {route.connection}: {reason_of(error)}") from None


def fields_of(name: str) -> ConnectionFields:
    """Fields of a connection of Airflow.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    fields = fields_named(name)
    if fields is None:
        raise ConfigurationError(
            f"there is no Airflow connection {name!r}, which a recipient of messages names: add it, or take the"
            f" recipient out of the policy ({document('notifications.md')})"
        )
    return fields


def fields_named(name: str) -> ConnectionFields | None:
    """Fields of a connection of Airflow; None: there is no connection of that name."""
    connection = connection_named(name)
    if connection is None:
        return None
    password = SecretStr(connection.password) if connection.password else None
    return ConnectionFields(
        name=name,
        host=connection.host,
        port=connection.port,
        schema=connection.schema,
        login=connection.login,
        password=password,
        extra=connection.extra_dejson,
    )


def _webhook(fields: ConnectionFields, message: Message) -> None:
    post(webhook_of(fields), message)


def _smtp(fields: ConnectionFields, message: Message) -> None:
    smtp_address(fields)  # raises if it would be sent unencrypted
    to = readers_of(fields)
    hook_class = _provider(RecipientKind.SMTP).SmtpHook
    # The hook's retry could send a mail twice: the outbox retries instead, after a pause and with the same id.
    once = type("OneTry", (hook_class,), {"smtp_retry_limit": 0})
    with once(smtp_conn_id=fields.name) as hook:
        hook.send_email_smtp(
            to=to,
            subject=message.subject,
            html_content=_as_html(message),
            mime_subtype="alternative",
            custom_headers={"Message-ID": f"<{message.id}@pulsar-steward>", "Auto-Submitted": "auto-generated"},
        )


def readers_of(fields: ConnectionFields) -> str | list[str]:
    """Recipients' addresses in a connection of type SMTP.

    Raises:
        ConfigurationError: If the connection names no recipient or no sender.
    """
    to: str | list[str] | None = fields.extra.get("to")
    if not to or not fields.extra.get("from_email"):
        raise ConfigurationError(
            f"the connection {fields.name!r} says not whom to write to, or from whom: give `to` and `from_email` in"
            " its extra"
        )
    return to


def _as_html(message: Message) -> str:
    """Body of a mail in HTML, as the provider sends nothing else; only the link is markup, the rest is text."""
    link = html.escape(message.link)
    return f'<pre style="white-space: pre-wrap">{html.escape(message.text)}</pre>\n<p><a href="{link}">{link}</a></p>'


def _slack(fields: ConnectionFields, message: Message) -> None:
    hook_class = _provider(RecipientKind.SLACK).SlackWebhookHook
    text = f"{message.subject}\n{message.text}\n{message.link}"
    parts = [text[begin : begin + MAX_BLOCK] for begin in range(0, len(text), MAX_BLOCK)][:MAX_BLOCKS]
    blocks = [{"type": "section", "text": {"type": "plain_text", "text": part, "emoji": False}} for part in parts]
    hook = hook_class(slack_webhook_conn_id=fields.name, timeout=SECONDS)
    # Slack reads the text of desktop notifications as markup: its three special characters are escaped.
    hook.send(text=html.escape(message.subject, quote=False), blocks=blocks, unfurl_links=False, unfurl_media=False)


def _pagerduty(fields: ConnectionFields, message: Message) -> None:
    hook_class = _provider(RecipientKind.PAGERDUTY).PagerdutyEventsHook
    hook_class(pagerduty_events_conn_id=fields.name).send_event(
        summary=message.subject[:MAX_SUMMARY],
        severity=message.severity.value,
        source=f"pulsar-steward {', '.join(message.clusters)}",
        dedup_key=message.id,
        custom_details={"text": message.text, "event": message.event.value},
        links=[{"href": message.link, "text": "Airflow"}] if "://" in message.link else None,
    )


def _apprise(fields: ConnectionFields, message: Message) -> None:
    hook_class = _provider(RecipientKind.APPRISE).AppriseHook
    apprise = _module("apprise", RecipientKind.APPRISE)
    hook = hook_class(apprise_conn_id=fields.name)
    # The hook's own `notify` drops the result, which tells whether the message was delivered.
    services = apprise.Apprise()
    hook.set_config_from_conn(conn=hook.get_connection(fields.name), apprise_obj=services)
    taken = services.notify(
        body=f"{message.text}\n{message.link}",
        title=message.subject,
        notify_type=_APPRISE_TYPES[message.severity],
        body_format="text",
        tag="all",
    )
    if not taken:
        raise NotDelivered(f"a service of the connection {fields.name!r} did not take it, or it names none")


SENDERS: dict[RecipientKind, Callable[[ConnectionFields, Message], None]] = {
    RecipientKind.WEBHOOK: _webhook,
    RecipientKind.SMTP: _smtp,
    RecipientKind.SLACK: _slack,
    RecipientKind.PAGERDUTY: _pagerduty,
    RecipientKind.APPRISE: _apprise,
}


_PROVIDERS = {
    RecipientKind.SMTP: "airflow.providers.smtp.hooks.smtp",
    RecipientKind.SLACK: "airflow.providers.slack.hooks.slack_webhook",
    RecipientKind.PAGERDUTY: "airflow.providers.pagerduty.hooks.pagerduty_events",
    RecipientKind.APPRISE: "airflow.providers.apprise.hooks.apprise",
}
"""Modules of Airflow's providers that send messages; the extra of the same name installs the package."""


def require_provider(kind: RecipientKind) -> None:
    """Checks that the provider for messages of a kind is installed.

    Raises:
        ConfigurationError: If it is not installed.
    """
    if kind in _PROVIDERS:
        _provider(kind)


def _provider(kind: RecipientKind) -> Any:
    return _module(_PROVIDERS[kind], kind)


def _module(name: str, kind: RecipientKind) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"messages by {kind} need a package that is not installed here: install pulsar-steward[{kind}] where"
            " Airflow's tasks run"
        ) from error
