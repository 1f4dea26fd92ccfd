"""One HTTP exchange with a cluster: authentication, redirects, time limits, safe retries; nothing of Pulsar's paths.

The only module that imports `requests`. Redirects are followed here and not by `requests`, which drops the token on
the way to another host or port: every broker is another host or port. The token goes to brokers of this cluster only.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
import requests
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    RedirectRefused,
    ServerError,
    TimedOut,
    TooManyRequests,
    Unreachable,
    error_for_status,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pulsar_steward.admin.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")
Method = Literal["GET", "PUT", "POST", "DELETE"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 1 << 20
_PASSING = (Unreachable, TimedOut, BrokenAnswer, ServerError, TooManyRequests)
_MEMBERS_PATH = "/admin/v2/brokers"


class Answer(msgspec.Struct, frozen=True):
    """A 2xx answer: who gave it, and its body as it came."""

    method: str
    path: str
    broker: str
    body: bytes

    def decoded(self, expected: type[T]) -> T:
        """The JSON body as this type.

        Raises:
            BrokenAnswer: If the body is not JSON or of another shape.
        """
        try:
            return msgspec.json.decode(self.body, type=expected)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BrokenAnswer(self.method, self.path, self.broker, f"the answer cannot be read: {error}") from error


class Transport:
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
        self._session = requests.Session()
        self._session.trust_env = False  # no .netrc, no proxies: nobody else's credentials, no detours
        if settings.ca_file:
            self._session.verify = settings.ca_file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    def at(self, broker: str) -> Transport:
        """The same transport towards one broker only (``host:webport``)."""
        return Transport(self._settings, self._methods, base=f"{self._settings.scheme}://{broker}")

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Asks, and asks again with growing pauses where the failure may pass.

        Raises:
            AdminError: The last failure, when every try failed.
        """
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.limits.read_attempts),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(_PASSING),
            before_sleep=lambda state: log.info("trying again: %s", state.outcome and state.outcome.exception()),
            reraise=True,
        )
        return retrying(self._from_any_base, "GET", path, query, None)

    def send(self, method: Method, path: str, query: Mapping[str, str] | None = None, body: Any = None) -> Answer:
        """Sends a call that may change the cluster: once, as a repeat could do it twice.

        Raises:
            AdminError: What went wrong. After `TimedOut`, `BrokenAnswer`, `ServerError` or an `Unreachable` the change
                may have happened all the same: look before anything else.
        """
        return self._from_any_base(method, path, query, body)

    def _from_any_base(self, method: Method, path: str, query: Mapping[str, str] | None, body: Any) -> Answer:
        if method not in self._methods:
            raise PermissionError(f"this client may not send {method}: it only looks")
        for _ in self._bases[1:]:
            try:
                return self._follow(method, self._bases[0] + path, query, body)
            except _NeverSent as error:
                log.info("%s; asking another broker", error)
                self._bases.append(self._bases.pop(0))
        return self._follow(method, self._bases[0] + path, query, body)

    def _follow(self, method: Method, url: str, query: Mapping[str, str] | None, body: Any) -> Answer:
        seen = set()
        for _ in range(self._settings.limits.redirects + 1):
            seen.add(url)
            response = self._exchange(method, url, query, body)
            if response.status not in _REDIRECTS:
                return self._checked(method, url, response)
            target = urljoin(url, response.location or "")
            query = None  # a redirect's address carries the query itself
            if target in seen:
                break
            self._require_member(method, url, target)
            url = target
        raise RedirectRefused(method, urlsplit(url).path, urlsplit(url).netloc, "redirected in circles, or too often")

    def _checked(self, method: Method, url: str, response: _Response) -> Answer:
        parts = urlsplit(url)
        if 200 <= response.status < 300:  # noqa: PLR2004 - HTTP's own boundaries
            return Answer(method, parts.path, parts.netloc, response.body)
        error = error_for_status(response.status)
        raise error(method, parts.path, parts.netloc, response.reason, response.status)

    def _require_member(self, method: Method, url: str, target: str) -> None:
        here, there = urlsplit(url), urlsplit(target)
        if there.scheme != self._settings.scheme:
            raise RedirectRefused(method, here.path, here.netloc, f"redirected from {here.scheme} to {there.scheme}")
        if self._is_member(there.netloc):
            return
        self._members = frozenset(self._from_any_base("GET", _MEMBERS_PATH, None, None).decoded(list[str]))
        if not self._is_member(there.netloc):
            raise RedirectRefused(
                method, here.path, here.netloc, f"redirected to {there.netloc}, which is no broker of this cluster"
            )

    def _is_member(self, netloc: str) -> bool:
        if f"{self._settings.scheme}://{netloc}" in self._settings.bases or netloc in self._members:
            return True
        # Broker ids carry the plain port where a broker has both; a TLS redirect then names the same host's other port,
        # and the certificate proves the host.
        hosts = {urlsplit(f"//{member}").hostname for member in self._members}
        return self._settings.scheme == "https" and urlsplit(f"//{netloc}").hostname in hosts

    def _exchange(self, method: Method, url: str, query: Mapping[str, str] | None, body: Any) -> _Response:
        parts = urlsplit(url)
        limits = self._settings.limits
        headers = {"Accept": "application/json"}
        if self._settings.token is not None:
            headers["Authorization"] = f"Bearer {self._settings.token.get_secret_value()}"
        deadline = time.monotonic() + limits.total_timeout_seconds
        try:
            with self._session.request(
                method,
                url,
                params=query,
                json=body,
                headers=headers,
                timeout=(limits.connect_timeout_seconds, limits.read_timeout_seconds),
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _read(response, deadline)
                return _Response(response.status_code, response.headers.get("Location"), content, response.reason or "")
        except requests.RequestException as error:
            raise _in_our_words(error, method, parts.path, parts.netloc) from error


class _NeverSent(Unreachable):
    """No connection was made, so nothing was sent: another broker may be asked even for a change."""


class _Response(msgspec.Struct, frozen=True):
    status: int
    location: str | None
    body: bytes
    phrase: str

    @property
    def reason(self) -> str:
        """The broker's own reason where the body holds one, else HTTP's phrase."""
        try:
            document = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self.phrase
        reason = document.get("reason") if isinstance(document, dict) else None
        return " ".join(str(reason).split()) if reason else self.phrase


def _read(response: requests.Response, deadline: float) -> bytes:
    """The whole body; the read time limit bounds each piece, the deadline all of them."""
    chunks = []
    for chunk in response.iter_content(_CHUNK_BYTES):
        chunks.append(chunk)
        if time.monotonic() > deadline:
            raise requests.ReadTimeout("the answer did not end within the total time limit")
    return b"".join(chunks)


_WORDS: tuple[tuple[type[requests.RequestException], type[AdminError], str], ...] = (
    (requests.ConnectTimeout, _NeverSent, "no connection within the time limit"),
    (requests.Timeout, TimedOut, "no answer within the time limit"),
    (requests.exceptions.SSLError, _NeverSent, "the TLS handshake failed: check the certificate and `ca_file`"),
    (requests.exceptions.ChunkedEncodingError, BrokenAnswer, "the answer was cut short"),
    (requests.exceptions.ContentDecodingError, BrokenAnswer, "the answer was cut short"),
    (requests.ConnectionError, Unreachable, "the connection broke before an answer came"),
    (requests.RequestException, BrokenAnswer, "no usable answer"),
)
"""The HTTP library's errors in our words; the first row that fits counts, and the last one fits all."""


def _in_our_words(error: requests.RequestException, method: str, path: str, broker: str) -> AdminError:
    if isinstance(error, requests.ConnectionError) and _never_connected(error):
        return _NeverSent(method, path, broker, "no connection: refused, or the name does not resolve")
    ours, words = next((ours, words) for theirs, ours, words in _WORDS if isinstance(error, theirs))
    return ours(method, path, broker, words)


def _never_connected(error: requests.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return type(reason).__name__ in {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"}
