"""Calls to a cluster: choice of the broker, redirects and safe retries; Pulsar's paths are not known here.

Redirects are followed here and not by `requests`, which drops the token for another host or port, as every broker is.
The token is sent only to brokers of this cluster, and a redirected call has to be the same call
(`difference`). Addresses of listed brokers: docs/decisions/0015-where-brokers-are-reached.md.
"""

from __future__ import annotations

import logging
import re
import string
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    ConfigurationError,
    IssuerUnavailable,
    NeverSent,
    NotAllowed,
    RedirectRefused,
    ServerError,
    StewardError,
    TimedOut,
    TooManyRequests,
    Unreachable,
    error_for_status,
)
from pulsar_steward.pulsar.body import BrokerAnswer, Closing
from pulsar_steward.pulsar.exchange import Exchange, Response
from pulsar_steward.pulsar.members import Members, place_of
from pulsar_steward.pulsar.oauth2 import credential_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from urllib.parse import SplitResult

    from pulsar_steward.pulsar.members import Place
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Method = Literal["GET", "PUT", "POST", "DELETE"]

_SEE_OTHER = 303
_REDIRECTS = frozenset({301, 302, _SEE_OTHER, 307, 308})
_PASSING = (Unreachable, TimedOut, BrokenAnswer, ServerError, TooManyRequests, IssuerUnavailable)

_IN_DOUBT = (Unreachable, TimedOut, BrokenAnswer, RedirectRefused, ServerError)
"""Errors after which a change may have happened."""


class Transport(Closing):
    """Sends requests to one cluster. Not for use by several threads at once.

    Args:
        settings: The cluster's address, token and limits.
        methods: HTTP methods that this transport may send; only GET for a reader.
        base: A single broker to call, ``http://host:port``; None: any of the settings' URLs, in turn.
    """

    def __init__(self, settings: AdminSettings, methods: frozenset[Method], base: str | None = None) -> None:
        self._settings = settings
        self._methods = methods
        self._bases = [base] if base else list(settings.bases)
        self._members = Members(settings, self._bases, self._from_a_base, self._from_any_apart)
        self._exchange = Exchange(settings, credential_of(settings))

    def close(self) -> None:
        """Closes the connections."""
        self._exchange.close()

    @classmethod
    def of(cls, settings: AdminSettings, methods: frozenset[Method], broker: str) -> Transport:
        """Transport for one broker only (``host:webport``).

        Raises:
            BehindFrontDoor: No single broker can be reached.
        """
        with cls(settings, methods) as anybody:
            return anybody.at(broker)

    def at(self, broker: str) -> Transport:
        """Returns the same transport for one broker only (``host:webport``).

        Raises:
            BehindFrontDoor: No single broker can be reached.
        """
        return Transport(self._settings, self._methods, base=self.base_of(broker))

    def base_of(self, broker: str) -> str:
        """URL of a broker by its id (``host:webport``).

        Raises:
            BehindFrontDoor: No single broker can be reached.
        """
        return self._members.base_of(broker)

    def _from_any_apart(self, path: str) -> BrokerAnswer:
        """Response of any broker, through separate connections: several threads may call this at once."""
        with Transport(self._settings, frozenset({"GET"})) as anybody:
            return anybody._from_a_base(path)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> BrokerAnswer:
        """Sends a GET request; a temporary failure is retried at the next base URL, after growing pauses.

        Raises:
            AdminError: The last failure, if every try failed.
        """
        return self._tried(lambda: self._from_any_base("GET", path, query, None))

    def read(self, path: str, expected: type[T], query: Mapping[str, str] | None = None) -> T:
        """Sends a GET request as `get` does and decodes its JSON as this type; an unreadable response is retried too.

        Raises:
            AdminError: The last failure, when every try failed.
        """
        return self._tried(lambda: self._from_any_base("GET", path, query, None).decoded(expected))

    def _tried(self, ask: Callable[[], T], passing: tuple[type[AdminError], ...] = _PASSING) -> T:
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.limits.read_attempts),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(passing),
            before_sleep=self._turn_to_next if passing is _PASSING else None,
            reraise=True,
        )
        return retrying(ask)

    def get_here(self, path: str, query: Mapping[str, str] | None = None) -> BrokerAnswer:
        """Sends a GET request to the first base URL once, without redirects, for data that only that broker has.

        Raises:
            RedirectRefused: The broker redirects.
            AdminError: Any other failure.
        """
        url = self._bases[0] + path
        return self._checked("GET", url, self._not_redirected(url, self._exchange.whole("GET", url, query)))

    def pieces(self, path: str) -> Generator[bytes]:
        """As `get_here`, in pieces, for large bodies; close the iterator if it is not read to the end.

        A 5xx in place of a body is asked again, as `get` does: brokers that move a bundle answer so for a moment
        (docs/pulsar-behaviour.md).
        """
        url = self._bases[0] + path
        received = self._tried(lambda: self._begun(url), (ServerError,))
        with closing(received):
            yield from (each for each in received if isinstance(each, bytes))

    def _begun(self, url: str) -> Generator[Response | bytes]:
        """A response in pieces, once its head is there and good."""
        received = self._exchange.pieces(url)
        with ExitStack() as ends:
            ends.callback(received.close)
            head = next(received)
            if isinstance(head, Response):
                self._checked("GET", url, self._not_redirected(url, head))
            ends.pop_all()
        return received

    def send(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        may_leave: Callable[[], None] | None = None,
    ) -> BrokerAnswer:
        """Sends a call that may change the cluster, once: a second call could repeat the change.

        Args:
            method: The HTTP method.
            path: The path, quoted.
            query: The query.
            body: Sent as JSON.
            may_leave: Called right before each request is sent; its error stops that request.

        Raises:
            AdminError: The failure. After `TimedOut`, `BrokenAnswer`, `ServerError` or an `Unreachable`, the change may
                have happened nevertheless: read the cluster before anything else.
        """
        return self._from_any_base(method, path, query, body, may_leave)

    def _from_any_base(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        may_leave: Callable[[], None] | None = None,
    ) -> BrokerAnswer:
        if method not in self._methods:
            raise PermissionError(f"this client may not send {method}: it only looks")
        for _ in self._bases[1:]:
            try:
                return self._follow(method, self._bases[0] + path, query, body, may_leave)
            except NeverSent as error:
                log.info("%s; asking another broker", error)
                self._bases.append(self._bases.pop(0))
        return self._follow(method, self._bases[0] + path, query, body, may_leave)

    def _turn_to_next(self, state: RetryCallState) -> None:
        log.info("trying again: %s", state.outcome and state.outcome.exception())
        self._bases.append(self._bases.pop(0))

    def _follow(
        self, method: Method, url: str, query: Mapping[str, str] | None, body: Any, may_leave: Callable[[], None] | None
    ) -> BrokerAnswer:
        url = f"{url}?{urlencode(query)}" if query else url
        asked, until = urlsplit(url), self._exchange.deadline()
        seen: set[str] = set()
        for _ in range(self._settings.limits.redirects + 1):
            try:
                response = self._exchange.whole(method, url, None, body, until, may_leave)
            except StewardError as error:
                if not seen or (isinstance(error, AdminError) and not isinstance(error, NeverSent)):
                    raise
                broker, reason = urlsplit(url).netloc, f"redirected here, and not sent: {error}"
                # The redirecting broker may have stored the change, so this is no longer "never sent".
                raise Unreachable(method, asked.path, broker, reason) from error
            if response.status not in _REDIRECTS:
                return self._checked(method, url, response)
            seen.add(url)
            try:
                url = self._target(method, asked, url, response)
            except AdminError as error:
                if method == "GET" or (isinstance(error, _IN_DOUBT) and not isinstance(error, NeverSent)):
                    raise
                # As above: the change may be stored, so it has not surely failed, and no other broker may get it.
                reason = f"redirected, and where to cannot be checked: {error}"
                raise Unreachable(method, asked.path, urlsplit(url).netloc, reason) from error
            if url in seen:
                break
        raise RedirectRefused(method, asked.path, urlsplit(url).netloc, "redirected in circles, or too often")

    def _target(self, method: Method, asked: SplitResult, url: str, response: Response) -> str:
        """Target of a redirect, if it is the same call and the token may be sent there."""
        here = urlsplit(url)
        try:
            there = urlsplit(urljoin(url, response.location or ""))
            place = place_of(there)
        except ValueError as error:
            raise RedirectRefused(method, here.path, here.netloc, "redirected to what is no address") from error
        reached = self._members.reached(there, place)
        if reached is not None:
            there, place = reached, place_of(reached)
        if objection := self._objection(method, asked, there, place, response.status, known=reached is not None):
            raise RedirectRefused(method, here.path, here.netloc, objection)
        return there._replace(path=asked.path, fragment="").geturl()

    def _objection(
        self, method: Method, asked: SplitResult, there: SplitResult, place: Place, status: int, *, known: bool
    ) -> str | None:
        """Reason why a redirect is not followed, as a phrase; None: it is followed.

        Args:
            method: Method of the call.
            asked: Address of the original request.
            there: Address in the redirect, converted to a reachable one.
            place: Its host and port.
            status: Status of the redirect.
            known: True if, by the settings or the cluster itself, `there` is a broker's address.
        """
        if not known and there.scheme not in self._settings.schemes and not self._members.is_base(there, place):
            return f"redirected from {urlsplit(self._bases[0]).scheme} to {shown(there.scheme)}"
        if status == _SEE_OTHER and method != "GET":
            return "redirected by 303, which asks for another address to be read, and not for this to be done there"
        if other := difference(asked, there):
            return other
        if "@" in there.netloc or not (known or self._members.includes(place)):
            host = shown(there.netloc.rpartition("@")[2])
            return f"redirected to {host}, which is no web address of a broker of this cluster"
        try:
            self._settings.token_for(there.geturl())
        except ConfigurationError as error:
            return f"redirected: {error}"
        return None

    def _checked(self, method: Method, url: str, response: Response) -> BrokerAnswer:
        parts = urlsplit(url)
        if response.succeeded:
            return BrokerAnswer(method, parts.path, parts.netloc, response.body, response.date)
        error = error_for_status(response.status)
        where = (method, parts.path, parts.netloc, response.reason, response.status)
        if error is NotAllowed:
            raise NotAllowed(*where, *self._exchange.why_refused(response))
        raise error(*where)

    @staticmethod
    def _not_redirected(url: str, response: Response) -> Response:
        if response.status in _REDIRECTS:
            parts = urlsplit(url)
            raise RedirectRefused("GET", parts.path, parts.netloc, "the broker sends its callers elsewhere")
        return response

    def _from_a_base(self, path: str) -> BrokerAnswer:
        """Response of the first base URL that responds; redirects are not followed, as their check uses this call."""
        failure: AdminError | None = None
        for base in self._bases:
            url = base + path
            try:
                return self._checked("GET", url, self._not_redirected(url, self._exchange.whole("GET", url)))
            except AdminError as error:
                failure = failure or error
        raise failure or Unreachable("GET", path, "", "no base to ask")


# Read in apache/pulsar (4.0, 4.2): brokers redirect to the requested address, with another host and port, and with
# ``authoritative`` set or replaced. The leader of the classic load managers removes ``destinationBroker`` from an
# unload that it redirects to the bundle's owner, as it has already stored the destination. The extensible one keeps
# it (`PulsarWebResource.validateBundleOwnershipAsync`, `NamespacesBase.validateLeaderBrokerAsync`). Lookups up to
# 4.0 encode the topic's name anew with Java's `URLEncoder`, which turns a space into a plus (`TopicLookupBase`). From
# 5.0 on, lookups name the listener by whose addresses the next broker is to answer: `internalListenerName`, by default.


ADDED = "authoritative"
DROPPED = "destinationBroker"
LISTENER = "listenerName"

LOOKUP = "/lookup/v2/topic/"

_MEANINGLESS = frozenset(string.ascii_letters + string.digits + "-._~" + "!$&'()*,:@")
"""Characters without a special meaning in a path, escaped or not: they separate no segments or parameters."""

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_LONGEST_SHOWN = 60

Query = list[tuple[str, str]]


def difference(asked: SplitResult, target: SplitResult) -> str | None:
    """Difference between a redirect's target and the original request, as a phrase; None: it is the same call.

    Args:
        asked: Address of the original request, before any redirect.
        target: Address in the redirect.
    """
    of_lookup = target.path.startswith(LOOKUP)
    now = _normal(target.path.replace("+", "%20") if of_lookup else target.path)
    if (was := _normal(asked.path)) != now:
        return f"redirected to another path, {_apart(now.split('/'), was.split('/'))}"
    wanted, told = _query(asked.query), _query(target.query)
    added = [value for name, value in told if name == ADDED]
    listeners = [value for name, value in told if name == LISTENER] if of_lookup else []
    rest = [pair for pair in told if pair[0] != ADDED and not (listeners and pair[0] == LISTENER)]
    if rest not in (wanted, [pair for pair in wanted if pair[0] != DROPPED]):
        return f"redirected with another query, {_written(rest)} in place of {_written(wanted)}"
    if added not in ([], ["true"], ["false"]):
        return f"redirected with {ADDED}={shown(' and '.join(added))}, which is neither true nor false"
    if len(listeners) > 1 or not all(map(_NAME.fullmatch, listeners)):
        return f"redirected with {LISTENER}={shown(' and '.join(listeners))}, which is no name of a listener"
    return None


def _normal(path: str) -> str:
    """Normalises a path (RFC 3986): unneeded escapes are removed, all others are in capitals.

    An escaped slash stays escaped: it is part of a name, and a plain slash separates names.
    """
    return _ESCAPE.sub(_unescaped, path)


def _unescaped(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return character if character in _MEANINGLESS else escape[0].upper()


def _query(text: str) -> Query:
    return sorted(parse_qsl(text, keep_blank_values=True, errors="surrogateescape"))


def _written(query: Query) -> str:
    return shown(urlencode(query, errors="surrogateescape")) or "none"


def _apart(now: Sequence[str], was: Sequence[str]) -> str:
    """Describes two paths, from the first different segment on."""
    same = 0
    while same < min(len(now), len(was)) - 1 and now[same] == was[same]:
        same += 1
    return f"{shown('/'.join(now[same:]))} in place of {shown('/'.join(was[same:]))}"


def shown(text: str) -> str:
    """Part of an address for a message: escaped, so that it contains no terminal commands, and shortened."""
    plain = quote(text, safe="%/=&:@,;+!$'()*", errors="replace")
    return plain if len(plain) <= _LONGEST_SHOWN else f"{plain[:_LONGEST_SHOWN]}…"
