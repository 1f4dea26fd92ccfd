"""One HTTP exchange: credentials, time and size limits, bodies whole or in pieces. Redirects are ordinary responses.

Secrets are masked here in all parts of a response, before anybody sees them: bodies, headers and error messages.
"""

from __future__ import annotations

import logging
import ssl
import time
import traceback
from contextlib import contextmanager
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import requests
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.decoding import decode
from pulsar_steward.errors import AdminError, ConfigurationError, NeverSent, StewardError
from pulsar_steward.pulsar.body import Body, Closing, gathered
from pulsar_steward.pulsar.bounds import BoundAdapter, Bounds
from pulsar_steward.pulsar.faults import ProxyRefused, Unusable, in_our_words, why_refused
from pulsar_steward.pulsar.mask import mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from pulsar_steward.pulsar.credentials import Credential
    from pulsar_steward.pulsar.mask import Mask
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 18
_UNPACKED = frozenset({"gzip", "x-gzip"})
_FAILURES = (requests.RequestException, urllib3_errors.HTTPError, Unusable, ProxyRefused, TimeoutError)
_UNAUTHORIZED = 401


class Response(msgspec.Struct, frozen=True):
    """HTTP response of any status; `date` is its ``Date`` header as the server wrote it."""

    status: int
    location: str | None
    body: Body
    phrase: str
    date: str | None

    @property
    def succeeded(self) -> bool:
        """True if the status is 2xx."""
        return _succeeded(self.status)

    @property
    def reason(self) -> str:
        """Reason in the body, from the broker, or else the status line's phrase."""
        return self.own_reason or self.phrase

    @property
    def own_reason(self) -> str | None:
        """Reason in the body; None: it has none, as the web server's own pages."""
        try:
            document = decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        reason = document.get("reason") if isinstance(document, dict) else None
        return " ".join(str(reason).split()) if reason else None


class MaskedFailure(Exception):
    """Replaces an HTTP library's own error if that contained the token."""


class Exchange(Closing):
    """Sends requests to any server with one cluster's settings. Not for use by several threads at once.

    Args:
        settings: Limits, certificates and forward proxy.
        credential: Headers to send, and secrets to mask.

    Raises:
        ConfigurationError: If a file of certificates cannot be used.
    """

    def __init__(self, settings: AdminSettings, credential: Credential) -> None:
        self._settings = settings
        self._credential = credential
        self._bounds = Bounds()
        self._session = _Session()
        self._session.trust_env = False  # no .netrc and no proxies of the environment: no other credentials or routes
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # nor cookies that a response sets
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, BoundAdapter(self._bounds))
        if authorities := settings.ca_file:
            if not Path(authorities).is_dir():
                _check_file("ca_file", lambda context: context.load_verify_locations(authorities), authorities)
            self._session.verify = authorities
        if (certificate := settings.client_cert_file) is not None:
            key = settings.client_key_file
            # An encrypted key gets an empty password: OpenSSL would ask for one on the terminal.
            _check_file(
                "client_cert_file", lambda context: context.load_cert_chain(certificate, key, lambda: ""), certificate
            )
            self._session.cert = (certificate, key) if key is not None else certificate
        if settings.proxy is not None:
            self._session.proxies = {"http": settings.proxy, "https": settings.proxy}

    @property
    def _mask(self) -> Mask:
        """Mask of all secrets that may have been sent by now."""
        return mask_of(*self._credential.secrets)

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    def why_refused(self, response: Response) -> tuple[str, str]:
        """Why a 401 or 403 refused the credentials that were sent, as far as that is known, and the remedy."""
        token = self._credential.secrets[-1] if self._settings.token is not None else None
        return why_refused(self._settings, token, response.status, reasoned=response.own_reason is not None)

    def deadline(self) -> float:
        """Deadline of a call that begins now, by `time.monotonic`."""
        return time.monotonic() + self._settings.limits.total_timeout_seconds

    def whole(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        until: float | None = None,
        may_leave: Callable[[], None] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a request and reads the whole response. A GET request is sent again after a 401, with a newer token.

        Args:
            method: HTTP method.
            url: Address, with or without a query.
            query: Parameters added to the query.
            body: Sent as JSON; None: no body.
            until: Deadline; None: the policy's total timeout from now on.
            may_leave: Called after the connection is made, right before the request is sent; its error stops the
                request.
            form: Sent as a form instead of `body`.

        Raises:
            AdminError: If there is no readable response.
            ConfigurationError: If the token would travel unencrypted.
        """
        until = until or self.deadline()
        headers = self._who(url, method)
        response = self._answered(method, url, query, body, until, may_leave, form, headers)
        if response.status == _UNAUTHORIZED and self._renewed(headers) and method == "GET":
            return self._answered(method, url, query, body, until, may_leave, form, self._who(url, method))
        return response

    def _renewed(self, refused: Mapping[str, str]) -> bool:
        """True if there are other headers than the refused ones; False if renewing fails, as then the 401 counts."""
        try:
            return self._credential.renewed(refused)
        except StewardError as error:
            log.warning("the token was refused, and there is no other one: %s", error)
            return False

    def _answered(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None,
        body: Any,
        until: float,
        may_leave: Callable[[], None] | None,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> Response:
        try:
            with self._sent(method, url, headers, query, body, until, may_leave, form) as response:
                return self._response(response, gathered(self._pieces(response)))
        except _FAILURES as error:
            failure = self._named(error, method, url)
        raise failure

    def _who(self, url: str, method: str) -> dict[str, str]:
        """Headers that authenticate a request, if they may be sent to this address.

        Raises:
            NeverSent: If there are none for a change, so that it was not sent.
            StewardError: If there are none for another request, or a secret would travel unencrypted.
        """
        self._settings.token_for(url)
        try:
            return self._credential.headers(url)
        except StewardError as error:
            if method == "GET":
                raise
            parts = urlsplit(url)
            raise NeverSent(method, parts.path, parts.netloc, str(error)) from error

    def pieces(self, url: str) -> Generator[Response | bytes]:
        """Sends a GET request; yields the response's head (with an empty body), then its body in pieces.

        Raises:
            AdminError: If there is no response, or none that can be read.
            ConfigurationError: If the token would have to travel unencrypted.
        """
        try:
            with self._sent("GET", url, self._who(url, "GET"), None, None, self.deadline()) as response:
                yield self._response(response, b"")
                yield from self._pieces(response)
                return
        except _FAILURES as error:
            failure = self._named(error, "GET", url)
        raise failure

    @contextmanager
    def _sent(
        self,
        method: str,
        url: str,
        who: Mapping[str, str],
        query: Mapping[str, str] | None,
        body: Any,
        until: float,
        may_leave: Callable[[], None] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Iterator[requests.Response]:
        limits = self._settings.limits
        headers = {"Accept": "application/json, text/plain;q=0.5", "Accept-Encoding": "gzip", **who}
        self._bounds.renew(until, limits.most_answer_megabytes << 20, may_leave)
        with self._session.request(
            method,
            url,
            params=query,
            json=body,
            data=form,
            headers=headers,
            timeout=(limits.connect_timeout_seconds, limits.read_timeout_seconds),
            allow_redirects=False,
            stream=True,
        ) as response:
            yield response

    def _response(self, response: requests.Response, body: Body) -> Response:
        location, date = (response.headers.get(name) for name in ("Location", "Date"))
        return Response(
            response.status_code,
            None if location is None else self._mask.text(location),
            body,
            self._mask.text(response.reason or ""),
            None if date is None else self._mask.text(date),
        )

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        """Body of a response, decompressed and masked."""
        pieces = self._unpacked(response)
        return self._mask.document(pieces) if _succeeded(response.status_code) else self._mask.failure(pieces)

    def _unpacked(self, response: requests.Response) -> Iterator[bytes]:
        """Decompressed body, piece by piece as it arrives.

        `requests.Response.iter_content` would wait for a full piece, so a slow body could exceed the deadline.
        """
        packed = [each.strip().lower() for each in response.headers.get("Content-Encoding", "identity").split(",")]
        if len(packed) > 1 or not _UNPACKED.union({"identity", ""}).issuperset(packed):
            raise Unusable("it is packed more than once, or in another way than gzip")
        most = left = self._settings.limits.most_answer_megabytes << 20
        while piece := response.raw.read1(_PIECE_BYTES, decode_content=True):
            self._bounds.seconds(None)
            left -= len(piece)
            if left < 0:
                raise Unusable(f"unpacked it is larger than {most >> 20} MB (admin.most_answer_megabytes)")
            yield piece

    def _named(self, error: Exception, method: str, url: str) -> AdminError:
        """Converts a failure to an `AdminError`, caused by the library's error unless that contained the token."""
        parts = urlsplit(url)
        ours = in_our_words(error, method, parts.path, parts.netloc, left=self._bounds.left)
        said = "".join(traceback.format_exception(error))
        try:
            masked = self._mask.text(said)
        except Unusable:
            masked = ""
        ours.__cause__ = error if masked == said else MaskedFailure(type(error).__name__)
        return ours


class _Session(requests.Session):
    """Session that ignores redirects: `requests` would read their bodies and targets even without following them."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Returns None, so that `requests` ignores a redirect."""


def _check_file(key: str, load: Callable[[ssl.SSLContext], object], file: str) -> None:
    """Loads certificates before any connection is made, so that an error names their file.

    Raises:
        ConfigurationError: If they cannot be used.
    """
    try:
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:
        failure = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
    else:
        return
    raise ConfigurationError(
        f"`{key}` {file} cannot be used: {failure}: it has to be a file of PEM, a key without password"
    )


def _succeeded(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
