"""Calls to a cluster: which broker is asked, redirects, safe retries; nothing of Pulsar's paths.

Redirects are followed here and not by `requests`, which drops the token on the way to another host or port: every
broker is another host or port. The token goes to brokers of this cluster only.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from pulsar_steward.admin.body import Body
from pulsar_steward.admin.closing import Closing
from pulsar_steward.admin.exchange import Exchange, Response
from pulsar_steward.admin.faults import NeverSent
from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    RedirectRefused,
    ServerError,
    StewardError,
    TimedOut,
    TooManyRequests,
    Unreachable,
    error_for_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pulsar_steward.admin.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Method = Literal["GET", "PUT", "POST", "DELETE"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = (Unreachable, TimedOut, BrokenAnswer, ServerError, TooManyRequests)
_MEMBERS_PATH = "/admin/v2/brokers"


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
        self._members: frozenset[str] = frozenset()
        self._exchange = Exchange(settings)

    def close(self) -> None:
        """Closes the connections."""
        self._exchange.close()

    def at(self, broker: str) -> Transport:
        """The same transport towards one broker only (``host:webport``)."""
        return Transport(self._settings, self._methods, base=f"{self._settings.scheme}://{broker}")

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Asks, and asks again, of the next base and with growing pauses, where the failure may pass.

        Raises:
            AdminError: The last failure, when every try failed.
        """
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.limits.read_attempts),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(_PASSING),
            before_sleep=self._turn_to_next,
            reraise=True,
        )
        return retrying(self._from_any_base, "GET", path, query, None)

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
        seen: set[str] = set()
        for _ in range(self._settings.limits.redirects + 1):
            try:
                response = self._exchange.whole(method, url, query, body, may_leave)
            except StewardError as error:
                if not seen or (isinstance(error, AdminError) and not isinstance(error, NeverSent)):
                    raise
                parts = urlsplit(url)
                # The broker that redirected here may have noted the change, so this is no longer "never sent".
                raise Unreachable(
                    method, parts.path, parts.netloc, f"redirected here, and not sent: {error}"
                ) from error
            if response.status not in _REDIRECTS:
                return self._checked(method, url, response)
            seen.add(url)
            target = self._target(method, url, response)
            query = None  # a redirect's address carries the query itself
            if target in seen:
                break
            url = target
        raise RedirectRefused(method, urlsplit(url).path, urlsplit(url).netloc, "redirected in circles, or too often")

    def _target(self, method: Method, url: str, response: Response) -> str:
        """Where a redirect leads, if the token may go there."""
        here = urlsplit(url)
        try:
            target = urljoin(url, response.location or "")
            there = urlsplit(target)
        except ValueError as error:
            raise RedirectRefused(method, here.path, here.netloc, "redirected to what is no address") from error
        if there.scheme != self._settings.scheme:
            raise RedirectRefused(method, here.path, here.netloc, f"redirected from {here.scheme} to {there.scheme}")
        if not self._is_member(there.netloc):
            self._members = self._members_now()
        if not self._is_member(there.netloc):
            shown = there.netloc.rpartition("@")[2]
            raise RedirectRefused(
                method, here.path, here.netloc, f"redirected to {shown}, which is no broker of this cluster"
            )
        return target

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

    def _members_now(self) -> frozenset[str]:
        """The brokers that the cluster lists, from a base and never by a redirect: that had to be checked as well."""
        failure: AdminError | None = None
        for base in self._bases:
            url = base + _MEMBERS_PATH
            try:
                response = self._exchange.whole("GET", url, None, None)
                if response.status in _REDIRECTS:
                    raise RedirectRefused(
                        "GET", _MEMBERS_PATH, urlsplit(url).netloc, "the list of brokers is redirected"
                    )
                return frozenset(self._checked("GET", url, response).decoded(list[str]))
            except AdminError as error:
                failure = failure or error
        raise failure or Unreachable("GET", _MEMBERS_PATH, "", "no base to ask")

    def _is_member(self, netloc: str) -> bool:
        if "@" in netloc:
            return False
        if f"{self._settings.scheme}://{netloc}" in self._settings.bases or netloc in self._members:
            return True
        # Broker ids carry the plain port where a broker has both; a TLS redirect then names the same host's other port,
        # and the certificate proves the host.
        hosts = {urlsplit(f"//{member}").hostname for member in self._members}
        return self._settings.scheme == "https" and urlsplit(f"//{netloc}").hostname in hosts
