"""Every exception that Pulsar Steward raises on purpose, as one tree.

::

    StewardError
    ├── PolicyError              a policy file that does not hold up; names the key
    ├── SnapshotError            a snapshot that is missing, unfinished or of another shape
    ├── ConfigurationError       a connection or setting that is missing or contradicts another
    ├── LedgerError              the ledger cannot be read or written
    │   ├── NotInLedger          ... does not hold the plan, batch or approval asked for
    │   ├── OutdatedPlan         ... holds the plan in a format of another version, which this one cannot read
    │   └── LedgerTampered       ... is not what was written: somebody changed, removed or inserted a row
    ├── InvalidName              a name from outside that cannot be a part of a path of the admin API
    ├── NobodyAnswered           no broker that the cluster lists could be read
    │   ├── KafkaUnreachable     no broker of a Kafka cluster answered
    │   └── OnlyFrontDoor        ... as only a balancer or proxy in front of them is reached
    ├── NotDelivered             a message that its recipient did not take, or perhaps did
    ├── LeaseLost                another writer holds the cluster, or this one's lease ran out
    ├── Refused                  the gate stays shut: what was asked for was not approved, or is no longer
    │   └── Halted               ... or a person stopped all changes of the cluster
    └── AdminError               a call to the Pulsar admin API that did not answer as hoped
        ├── Unreachable          no connection: refused, reset, or the name does not resolve
        │   ├── NeverSent        ... so that nothing was sent: a change may be sent to another broker
        │   │   ├── ProxyFailed  ... the forward proxy cannot be reached, or refuses
        │   │   └── BehindFrontDoor  ... only a balancer or proxy is reached, and no single broker
        │   ├── TlsFailed        ... or none that both sides trust
        │   │   ├── NoTls        ... what answers speaks none
        │   │   ├── ClientCertificateWanted  ... the server takes no client without one that it trusts
        │   │   └── HandshakeCut ... the server closed the connection in the TLS handshake
        │   └── OnlyTls          ... what answers speaks nothing but TLS
        ├── TimedOut             no answer in time: the call may still take effect
        ├── BrokenAnswer         an answer that cannot be read: cut short, not JSON, wrong shape
        ├── RedirectRefused      a redirect to a host outside the cluster, or in circles
        ├── NoAccessToken        an OAuth2 issuer gave no access token
        │   └── IssuerUnavailable  ... for now: nobody answers, it fails, or asks for fewer calls
        └── StatusError          an HTTP status other than 2xx, with the broker's own reason
            ├── NotAllowed       401, 403
            ├── NotFound         404
            ├── NotAcceptable    406
            ├── Conflict         409
            ├── Precondition     412
            ├── TooManyRequests  429
            └── ServerError      5xx

`AdminError` keeps what an operator needs (method, path, broker, status, reason) and nothing that may hold a secret: no
headers, no query beyond the names that this package builds itself. The original exception is chained as its cause.

Messages quote names and reasons from outside. As text (`str`, and so in logs, reports and traces) every error is one
line in which nothing is hidden, as `pulsar_steward.outside_text.shown` has it; its attributes keep what was said.
"""

from __future__ import annotations

from http import HTTPStatus

from pulsar_steward.outside_text import shown

REASON_LIMIT = 256
"""Characters kept of a broker's reason: enough for its sentence, too few for a stack trace."""


class StewardError(Exception):
    """Base of every error that Pulsar Steward raises on purpose."""

    def __str__(self) -> str:
        return shown(self._message())

    def _message(self) -> str:
        """The message, with names and reasons as they were received."""
        return super().__str__()


class PolicyError(StewardError):
    """A policy file, or that of a fleet, that is not valid; each argument names a key and what would be valid."""

    def _message(self) -> str:
        return "; ".join(str(trouble) for trouble in self.args)


class SnapshotError(StewardError):
    """A snapshot that is missing, unfinished or of another shape than expected."""


class ConfigurationError(StewardError):
    """A connection or setting that is missing or contradicts another; the message names it and the remedy."""


class LedgerError(StewardError):
    """The ledger cannot be read or written, so nothing may be changed."""


class NotInLedger(LedgerError):
    """The ledger does not hold the plan, batch or approval that was asked for."""


class OutdatedPlan(LedgerError):
    """A recorded plan in the format of another version of Steward: it is as it was written, and cannot be read."""


class LedgerTampered(LedgerError):
    """The ledger is not what was written, so it permits nothing; the message names the row."""


class InvalidName(StewardError, ValueError):
    """A name from outside that cannot be a part of a path of the admin API: it would name another resource."""


class NobodyAnswered(StewardError):
    """No broker that the cluster lists could be read."""


class KafkaUnreachable(NobodyAnswered):
    """No broker of a Kafka cluster answered."""


class OnlyFrontDoor(NobodyAnswered):
    """No broker could be read, as only a balancer or a proxy in front of all brokers is reached."""


class NotDelivered(StewardError):
    """A message that its recipient did not take; it may have come all the same."""


class LeaseLost(StewardError):
    """Another writer holds the cluster's lease, or this writer's lease expired."""


class Refused(StewardError):
    """A change is refused: no person approved it, or the approval is no longer valid. Nothing was called."""


class Halted(Refused):
    """A person stopped all changes of this cluster; the message says who, since when and why."""


class AdminError(StewardError):
    """A call to the Pulsar admin API that failed.

    Attributes:
        method: The HTTP method of the call.
        path: The path of the call, as sent (quoted), without its query.
        broker: ``host:port`` of the last request, after any redirects.
        reason: What went wrong, in the broker's own words where it gave any; at most `REASON_LIMIT` characters.
    """

    def __init__(self, method: str, path: str, broker: str, reason: str) -> None:
        self.method = method
        self.path = path
        self.broker = broker
        self.reason = reason if len(reason) <= REASON_LIMIT else reason[: REASON_LIMIT - 1] + "…"
        super().__init__(method, path, broker, self.reason)  # unchanged, so that it survives pickling

    def _message(self) -> str:
        return f"{self.method} {self.path} at {self.broker}: {self.reason}"


class Unreachable(AdminError):
    """No connection: refused, reset before a response, or the name does not resolve."""


class NeverSent(Unreachable):
    """No connection was made, so nothing was sent: even a change may be sent to another broker."""


class ProxyFailed(NeverSent):
    """No connection through the forward proxy: it cannot be reached, or refuses."""


class BehindFrontDoor(NeverSent):
    """No single broker can be asked, as only a balancer or a proxy in front of all brokers is reached."""


class TlsFailed(Unreachable):
    """No connection that both sides trust; the call may have been sent by then."""


class NoTls(TlsFailed):
    """No TLS: what answers there speaks none, as a port for http does."""


class ClientCertificateWanted(TlsFailed):
    """The server takes no client without a certificate that it trusts (mutual TLS)."""


class HandshakeCut(TlsFailed):
    """The server closed the connection in the TLS handshake, and did not say why."""


class OnlyTls(Unreachable):
    """The server speaks nothing but TLS, and was asked by http."""


class TimedOut(AdminError):
    """No response within the time limit. The broker may still carry the call out."""


class BrokenAnswer(AdminError):
    """A response that cannot be read: cut short, not JSON, or of another shape than documented."""


class RedirectRefused(AdminError):
    """A redirect that was not followed: out of the cluster, to a weaker scheme, or in circles."""


class NoAccessToken(AdminError):
    """An OAuth2 issuer gave no access token; method, path and `broker` are those of the call to the issuer."""


class IssuerUnavailable(NoAccessToken):
    """An OAuth2 issuer gave no access token for now: nobody answers, it fails, or asks for fewer calls."""


class StatusError(AdminError):
    """An HTTP status other than 2xx.

    Attributes:
        status: The HTTP status code.
    """

    def __init__(self, method: str, path: str, broker: str, reason: str, status: int) -> None:
        self.status = status
        super().__init__(method, path, broker, reason)
        self.args = (*self.args, status)

    def _message(self) -> str:
        return f"{self.method} {self.path} at {self.broker}: {self.status} {self.reason}"


class NotAllowed(StatusError):
    """401 or 403: the token is missing, wrong, or has too few rights.

    Attributes:
        why: Which credentials were sent, from where, and what is wrong with them, as far as that is known.
        remedy: What to do about it; the message ends with it.
    """

    def __init__(
        self, method: str, path: str, broker: str, reason: str, status: int, why: str = "", remedy: str = ""
    ) -> None:
        super().__init__(method, path, broker, reason, status)
        self.why, self.remedy = why, remedy
        self.args = (*self.args, why, remedy)

    def _message(self) -> str:
        return "; ".join(filter(None, [super()._message(), self.why, self.remedy]))


class NotFound(StatusError):
    """404: the tenant, namespace or topic does not exist (any more)."""


class NotAcceptable(StatusError):
    """406: the broker does not take the value, such as a number of coordinators that is not higher than before."""


class Conflict(StatusError):
    """409: the broker cannot do it now, such as a move to a broker that is not active."""


class Precondition(StatusError):
    """412: the request no longer fits the cluster, such as a bundle whose boundaries changed."""


class TooManyRequests(StatusError):
    """429: the broker asks for fewer calls."""


class ServerError(StatusError):
    """5xx: the broker failed; whether it did anything first is not known."""


def error_for_status(status: int) -> type[StatusError]:
    """Error class for an HTTP status that is not 2xx."""
    named: dict[int, type[StatusError]] = {
        401: NotAllowed,
        403: NotAllowed,
        404: NotFound,
        406: NotAcceptable,
        409: Conflict,
        412: Precondition,
        429: TooManyRequests,
    }
    if status in named:
        return named[status]
    return ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else StatusError
