"""One HTTP exchange: the token, time limits, bodies whole or in pieces; redirects are answers like any other."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import requests
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.admin.body import Body, gathered
from pulsar_steward.admin.faults import in_our_words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from pulsar_steward.admin.settings import AdminSettings

_PIECE_BYTES = 1 << 18


class Response(msgspec.Struct, frozen=True):
    """An answer of any status; `date` is what the server's clock showed, as it wrote it."""

    status: int
    location: str | None
    body: Body
    phrase: str
    date: str | None

    @property
    def reason(self) -> str:
        """The broker's own reason where the body holds one, else HTTP's phrase."""
        try:
            document = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.phrase
        reason = document.get("reason") if isinstance(document, dict) else None
        return " ".join(str(reason).split()) if reason else self.phrase


class Exchange:
    """Exchanges with any server, under one cluster's settings. Not for use by several threads at once."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._session = _Session()
        self._session.trust_env = False  # no .netrc, no proxies: nobody else's credentials, no detours
        if settings.ca_file:
            self._session.verify = settings.ca_file

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    def whole(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        may_leave: Callable[[], None] | None = None,
    ) -> Response:
        """Sends, and reads the answer to its end; what `may_leave` raises keeps the request from leaving."""
        if may_leave is not None:
            may_leave()
        with self._sent(method, url, query, body) as (response, deadline):
            return _response(response, gathered(_pieces(response, deadline)))

    def pieces(self, url: str) -> Generator[Response | bytes]:
        """Asks, and yields the answer's head (its body left empty), then its body as it comes."""
        with self._sent("GET", url, None, None) as (response, deadline):
            yield _response(response, b"")
            yield from _pieces(response, deadline)

    @contextmanager
    def _sent(
        self, method: str, url: str, query: Mapping[str, str] | None, body: Any
    ) -> Iterator[tuple[requests.Response, float]]:
        parts = urlsplit(url)
        limits = self._settings.limits
        headers = {"Accept": "application/json, text/plain;q=0.5"}
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
                timeout=(
                    limits.connect_timeout_seconds,
                    min(limits.read_timeout_seconds, limits.total_timeout_seconds),
                ),
                allow_redirects=False,
                stream=True,
            ) as response:
                yield response, deadline
        except (requests.RequestException, urllib3_errors.HTTPError) as error:
            raise in_our_words(error, method, parts.path, parts.netloc) from error


class _Session(requests.Session):
    """Leaves redirects alone: even unfollowed, `requests` reads their bodies without limit and parses their targets."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: nothing for `requests` to do."""


def _response(response: requests.Response, body: Body) -> Response:
    headers = response.headers
    return Response(response.status_code, headers.get("Location"), body, response.reason or "", headers.get("Date"))


def _pieces(response: requests.Response, deadline: float) -> Iterator[bytes]:
    """The body; the read time limit bounds each piece, the deadline all of them.

    `requests.Response.iter_content` would wait for a full piece, so that a body that drips never met the deadline.
    """
    while piece := response.raw.read1(_PIECE_BYTES, decode_content=True):
        yield piece
        if time.monotonic() > deadline:
            raise requests.ReadTimeout("the answer did not end within the total time limit")
