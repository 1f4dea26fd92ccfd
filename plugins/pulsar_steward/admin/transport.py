"""Calls to a cluster: which broker is asked, redirects, safe retries; nothing of Pulsar's paths.

Redirects are followed here and not by `requests`, which drops the token on the way to another host or port: every
broker is another host or port. The token goes to brokers of this cluster only, and what is called there is what was
meant to be called (`pulsar_steward.admin.redirects`).
"""

from __future__ import annotations

import logging
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from pulsar_steward.admin.body import Body
from pulsar_steward.admin.closing import Closing
from pulsar_steward.admin.exchange import Exchange, Response
from pulsar_steward.admin.faults import NeverSent
from pulsar_steward.admin.figures import Broker
from pulsar_steward.admin.redirects import difference, shown
from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    ConfigurationError,
    RedirectRefused,
    ServerError,
    StewardError,
    TimedOut,
    TooManyRequests,
    Unreachable,
    error_for_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from urllib.parse import SplitResult

    from pulsar_steward.admin.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Method = Literal["GET", "PUT", "POST", "DELETE"]

_SEE_OTHER = 303
_REDIRECTS = frozenset({301, 302, _SEE_OTHER, 307, 308})
_PASSING = (Unreachable, TimedOut, BrokenAnswer, ServerError, TooManyRequests)
_MEMBERS_PATH = "/admin/v2/brokers"
_CONFIGURATION_PATH = "/admin/v2/brokers/configuration/runtime"
_DEFAULT_PORTS = {"http": 80, "https": 443}

Place = tuple[str | None, int | None]
"""A host, in small letters, and a port."""


class Answer(msgspec.Struct, frozen=True):
    """A 2xx answer: who gave it, its body as it came, and what the broker's clock showed (HTTP's ``Date``)."""

    method: str
    path: str
    broker: str
    body: Body
    date: str | None = None

    def decoded(self, expected: type[T]) -> T:
        """The JSON body as this type.

        Raises:
            BrokenAnswer: If the body is not JSON or of another shape.
        """
        try:
            return msgspec.json.decode(self.body, type=expected)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BrokenAnswer(self.method, self.path, self.broker, f"the answer cannot be read: {error}") from error


class Transport(Closing):
    """Exchanges with one cluster. Not for use by several threads at once.

    Args:
        settings: Where the cluster is, the token and the limits.
        methods: The HTTP methods that this transport may send at all; a reader's has GET only.
        base: A single broker to ask, ``http://host:port``; None: any of the settings' URLs, in turn.
    """

    def __init__(self, settings: AdminSettings, methods: frozenset[Method], base: str | None = None) -> None:
        self._settings = settings
        self._methods = methods
        self._bases = [base] if base else list(settings.bases)
        self._members: frozenset[Place] = frozenset()
        self._tls_ports: frozenset[int | None] = frozenset()
        self._exchange = Exchange(settings)

    def close(self) -> None:
        """Closes the connections."""
        self._exchange.close()

    def at(self, broker: str) -> Transport:
        """The same transport towards one broker only (``host:webport``)."""
        return Transport(self._settings, self._methods, base=self._settings.base_of(broker))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Asks, and asks again, of the next base and with growing pauses, where the failure may pass.

        Raises:
            AdminError: The last failure, when every try failed.
        """
        return self._tried(lambda: self._from_any_base("GET", path, query, None))

    def read(self, path: str, expected: type[T], query: Mapping[str, str] | None = None) -> T:
        """The same, with the answer's JSON as this type: one that cannot be read may be asked of the next base too.

        Raises:
            AdminError: The last failure, when every try failed.
        """
        return self._tried(lambda: self._from_any_base("GET", path, query, None).decoded(expected))

    def _tried(self, ask: Callable[[], T]) -> T:
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.limits.read_attempts),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(_PASSING),
            before_sleep=self._turn_to_next,
            reraise=True,
        )
        return retrying(ask)

    def get_here(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Asks the first base once, and follows no redirect: for what is of use from that broker only.

        Raises:
            RedirectRefused: The broker sends its callers elsewhere.
            AdminError: Anything else that went wrong.
        """
        url = self._bases[0] + path
        return self._checked("GET", url, self._not_redirected(url, self._exchange.whole("GET", url, query)))

    def pieces(self, path: str) -> Generator[bytes]:
        """The same for what may be too large to be held, piece by piece; close the iterator where it is not used up."""
        url = self._bases[0] + path
        received = self._exchange.pieces(url)
        with closing(received):
            for each in received:
                if isinstance(each, Response):
                    self._checked("GET", url, self._not_redirected(url, each))
                else:
                    yield each

    def send(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        may_leave: Callable[[], None] | None = None,
    ) -> Answer:
        """Sends a call that may change the cluster: once, as a repeat could do it twice.

        Args:
            method: The HTTP method.
            path: The path, quoted.
            query: The query.
            body: To be sent as JSON.
            may_leave: Asked right before each request leaves; what it raises keeps that request from leaving.

        Raises:
            AdminError: What went wrong. After `TimedOut`, `BrokenAnswer`, `ServerError` or an `Unreachable` the change
                may have happened all the same: look before anything else.
        """
        return self._from_any_base(method, path, query, body, may_leave)

    def _from_any_base(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        may_leave: Callable[[], None] | None = None,
    ) -> Answer:
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
    ) -> Answer:
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
                # The broker that redirected here may have noted the change, so this is no longer "never sent".
                raise Unreachable(method, asked.path, broker, reason) from error
            if response.status not in _REDIRECTS:
                return self._checked(method, url, response)
            seen.add(url)
            url = self._target(method, asked, url, response)
            if url in seen:
                break
        raise RedirectRefused(method, asked.path, urlsplit(url).netloc, "redirected in circles, or too often")

    def _target(self, method: Method, asked: SplitResult, url: str, response: Response) -> str:
        """Where a redirect leads, if the same may be asked there and the token may go there."""
        here = urlsplit(url)
        try:
            there = urlsplit(urljoin(url, response.location or ""))
            place = _place(there)
        except ValueError as error:
            raise RedirectRefused(method, here.path, here.netloc, "redirected to what is no address") from error
        if objection := self._objection(method, asked, there, place, response.status):
            raise RedirectRefused(method, here.path, here.netloc, objection)
        return there._replace(path=asked.path, fragment="").geturl()

    def _objection(
        self, method: Method, asked: SplitResult, there: SplitResult, place: Place, status: int
    ) -> str | None:
        if there.scheme != self._settings.scheme:
            return f"redirected from {self._settings.scheme} to {shown(there.scheme)}"
        if status == _SEE_OTHER and method != "GET":
            return "redirected by 303, which asks for another address to be read, and not for this to be done there"
        if other := difference(asked, there):
            return other
        if "@" in there.netloc or not self._is_member(place):
            host = shown(there.netloc.rpartition("@")[2])
            return f"redirected to {host}, which is no web address of a broker of this cluster"
        try:
            self._settings.token_for(there.geturl())
        except ConfigurationError as error:
            return f"redirected: {error}"
        return None

    def _checked(self, method: Method, url: str, response: Response) -> Answer:
        parts = urlsplit(url)
        if 200 <= response.status < 300:  # noqa: PLR2004 - HTTP's own boundaries
            return Answer(method, parts.path, parts.netloc, response.body, response.date)
        error = error_for_status(response.status)
        raise error(method, parts.path, parts.netloc, response.reason, response.status)

    @staticmethod
    def _not_redirected(url: str, response: Response) -> Response:
        if response.status in _REDIRECTS:
            parts = urlsplit(url)
            raise RedirectRefused("GET", parts.path, parts.netloc, "the broker sends its callers elsewhere")
        return response

    def _is_member(self, place: Place) -> bool:
        """Whether the settings or the cluster name it; the cluster is asked again about a place that was not known."""
        if place in {_place(urlsplit(base)) for base in self._settings.bases} or self._is_listed(place):
            return True
        self._members = frozenset(_place(urlsplit(self._settings.base_of(each))) for each in self._listed())
        return self._is_listed(place)

    def _is_listed(self, place: Place) -> bool:
        """Whether the place is that of a listed broker, by its id or, over TLS, by the port that brokers have for that.

        Ids carry the plain port where a broker has both.
        """
        if place in self._members:
            return True
        host, port = place
        if self._settings.scheme != "https" or host not in {each for each, _ in self._members}:
            return False
        if port in {_place(urlsplit(base))[1] for base in self._settings.bases}:
            return True
        self._tls_ports = self._tls_ports or self._tls_ports_told()
        return port in self._tls_ports

    def _listed(self) -> Iterable[str]:
        """The brokers that the cluster lists."""
        return self._from_a_base(_MEMBERS_PATH).decoded(list[Broker])

    def _tls_ports_told(self) -> frozenset[int | None]:
        """The port that a broker behind a base has for TLS, which is as a rule that of all of them; none: not told."""
        try:
            told = self._from_a_base(_CONFIGURATION_PATH).decoded(dict[str, str]).get("webServicePortTls", "")
        except AdminError as error:
            log.info("which port brokers have for TLS is not known: %s", error)
            return frozenset()
        return frozenset(int(port) for port in re.findall(r"[0-9]{1,5}", told))  # as Java writes it: Optional[8443]

    def _from_a_base(self, path: str) -> Answer:
        """What a base answers by itself: a redirect would have to be checked by what is asked here."""
        failure: AdminError | None = None
        for base in self._bases:
            url = base + path
            try:
                return self._checked("GET", url, self._not_redirected(url, self._exchange.whole("GET", url)))
            except AdminError as error:
                failure = failure or error
        raise failure or Unreachable("GET", path, "", "no base to ask")


def _place(parts: SplitResult) -> Place:
    return parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
