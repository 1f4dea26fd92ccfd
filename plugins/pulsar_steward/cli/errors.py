"""Error messages of the command line: one line each, with the remedy."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

import typer

from pulsar_steward.errors import (
    BehindFrontDoor,
    BrokenAnswer,
    ClientCertificateWanted,
    HandshakeCut,
    KafkaUnreachable,
    NeverSent,
    NoAccessToken,
    NobodyAnswered,
    NotFound,
    NoTls,
    OnlyFrontDoor,
    OnlyTls,
    ProxyFailed,
    RedirectRefused,
    ServerError,
    StewardError,
    TimedOut,
    TlsFailed,
    TooManyRequests,
    Unreachable,
)
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from typing import Final

COULD_NOT_LOOK: Final = 2
INTERRUPTED: Final = 130

ADDRESSES_REMEDY = "say by --address-map ADVERTISED=URL, once a broker, in place of --front-door"

REMEDIES: dict[type[StewardError], str] = {
    TimedOut: "that broker is slow or stuck: ask another one by a further --admin-url, or raise the time limits in"
    " the policy's section `admin`",
    RedirectRefused: "give the brokers' own addresses by --admin-url",
    NotFound: "is this the admin port of a Pulsar broker (8080 or 8443 by default)?",
    BrokenAnswer: "is this the admin port of a Pulsar broker (8080 or 8443 by default)?",
    ServerError: "look into that broker's log, or ask another one by a further --admin-url",
    TooManyRequests: "try again later, or ask another broker by a further --admin-url",
    TlsFailed: "give the certificate of the brokers' authority by --ca-file",
    ClientCertificateWanted: (
        "give a certificate of an authority that the brokers trust by --client-cert and --client-key"
    ),
    HandshakeCut: "give a certificate by --client-cert and --client-key, or name the port for https (8443 by default)",
    NoTls: "name the port for https (8443 by default), or http:// where the brokers have none",
    OnlyTls: "name the address as https://",
    ProxyFailed: "check --proxy, and that the proxy lets calls through to that host and port",
    BehindFrontDoor: ADDRESSES_REMEDY,
    NoAccessToken: (
        "check issuer_url, client_id, client_secret, audience, scope and issuer_ca_file in the file of --oauth2-file,"
        " and ask whoever runs the issuer"
    ),
    NeverSent: "check --admin-url, that the broker runs, and that no firewall lies between",
    Unreachable: "check --admin-url: is that the admin port of a Pulsar broker (8080 or 8443 by default), and not that"
    " of its own protocol (6650, 6651)? And that the broker runs, and no firewall lies between",
    NobodyAnswered: "every listed broker has to be reachable from here: check names, firewalls and the token",
    KafkaUnreachable: "check --kafka, TLS and login in --kafka-config, and that what brokers advertise is reachable"
    " from here",
    OnlyFrontDoor: ADDRESSES_REMEDY,
}
"""Remedies of errors, by class, or else by the nearest one that it is derived from."""


class JobFailed(StewardError):
    """A Spark job ended without a snapshot; the message is its last output."""


class OutputFailed(StewardError):
    """Standard output cannot be written to; the message says what was done all the same, if anything was."""


def in_one_line(error: StewardError) -> str:
    """Message of an error of Steward's own, with a remedy unless the message has one."""
    return _with_remedy(str(error), type(error))


def job_failure(words: str, error: str) -> str:
    """Words for a job that failed: its own of the error, and the remedy by the name of the error's class."""
    return _with_remedy(words, {kind.__name__: kind for kind in REMEDIES}.get(error, StewardError))


def remedy_of(kind: type[StewardError]) -> str:
    """Remedy of errors of a kind; empty where their own words say it."""
    return next((REMEDIES[each] for each in kind.__mro__ if each in REMEDIES), "")


def _with_remedy(words: str, kind: type[StewardError]) -> str:
    return f"{words}; {remedy}" if (remedy := remedy_of(kind)) else words


def told_wrong(error: Exception) -> str | None:
    """Message for an error of the command's arguments; None if it is another error."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{shown(error.filename)} is too long for the name of a file"
    say = getattr(error, "format_message", None)
    if say is None:
        return None
    words = _plainly(say())
    return f"{words}; `steward --help` lists the commands, and each of them has a --help" if words else "see --help"


def _plainly(words: str) -> str:
    """Words of the library for options as this command line says them."""
    for pattern, said in _OPTION_WORDS:
        words = re.sub(pattern, said, words)
    return words


_OPTION_WORDS = (
    (r"^Missing (?:option|argument|parameter) '\[?([^'\]/ ]+)[^']*'.*$", r"\1 is missing"),
    (r"^Invalid value for '([^'/ ]+)[^']*': (.*)$", r"\1: \2"),
    (r"Input should be greater than or equal to (\S+)$", r"has to be \1 or more"),
    (r"Input should be less than or equal to (\S+)$", r"has to be \1 or less"),
    (r"Input should be a valid integer.*$", "has to be a whole number"),
    (r"Input should be a valid number.*$", "has to be a number"),
    (r"Input should be ", "has to be "),
    (r"\.$", ""),
)
"""Patterns of the libraries' words, and what is said in their place, in this order."""


def command_group(words: str) -> typer.Typer:
    """Application of several commands, with this help; prints their list if none was given."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        help=words,
        invoke_without_command=True,
        callback=help_without_command,
    )


def help_without_command(context: typer.Context) -> None:
    """Prints the list of commands if none was given, and exits with an error, as nothing was done."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(COULD_NOT_LOOK)
