"""Layers that every request passes before the broker's own code: the log, the token, the faults."""

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.simulator import replies
from lab.simulator.faults import Answer, BrokenJson, Delay, Drop, Effect, Faults, Without, happens_before_work
from lab.simulator.model import RequestRecord

GZIP_FROM_BYTES = 32


class RequestLog:
    """Every request, in order of arrival; any thread may read it."""

    def __init__(self) -> None:
        self._records: list[RequestRecord] = []
        self._lock = threading.Lock()

    def add(self, record: RequestRecord) -> None:
        """Writes one down."""
        with self._lock:
            self._records.append(record)

    def all(self) -> tuple[RequestRecord, ...]:
        """Requests since the start, or since `clear`."""
        with self._lock:
            return tuple(self._records)

    def writes(self) -> tuple[RequestRecord, ...]:
        """Requests whose method changes something."""
        return tuple(record for record in self.all() if record.writes)

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._records.clear()


@dataclass(frozen=True, slots=True)
class Shared:
    """State that all brokers of a cluster share."""

    faults: Faults
    log: RequestLog
    token: str | None
    looking_token: str | None
    compress: bool
    keep_log: bool


class Front:
    """One broker as the server sees it (an ASGI application).

    Args:
        app: The broker's own code.
        broker_id: Which broker.
        shared: The cluster's log, faults and token.
        drop: Resets the connection to a client's (host, port).

    Attributes:
        clock_ahead_s: By how much the clock that answers are dated by is ahead.
        awake: Cleared while the broker is paused.
    """

    def __init__(self, app: ASGIApp, broker_id: str, shared: Shared, drop: Callable[[tuple[str, int]], None]) -> None:
        self._app = app
        self.clock_ahead_s = 0.0
        self._broker_id = broker_id
        self._shared = shared
        self._drop = drop
        self.awake = asyncio.Event()
        self.awake.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""

        async def dated(message: Message) -> None:
            await send(self._dated(message) if message["type"] == "http.response.start" else message)

        request = Request(scope, receive)
        body = await request.body()
        await self.awake.wait()
        effect = self._written_down(request, body)
        if self._refused(request):
            await replies.jetty_page(request, 401, "Authentication required")(scope, receive, dated)
        elif request.method != "GET" and self._bears(request, self._shared.looking_token):
            await replies.jetty_page(request, 403, "Forbidden")(scope, receive, dated)
        elif effect is not None and happens_before_work(effect):
            await self._instead(effect, request, dated)
        else:
            answer = await self._worked(scope, body)
            await self._sent(answer, effect, request, dated)

    def _dated(self, start: Message) -> Message:
        written = formatdate(time.time() + self.clock_ahead_s, usegmt=True)
        return {**start, "headers": [*start["headers"], (b"date", written.encode())]}

    def _written_down(self, request: Request, body: bytes) -> Effect | None:
        path, query, shared = request.url.path, request.url.query, self._shared
        if shared.keep_log:
            authorized, looks = "authorization" in request.headers, self._bears(request, shared.looking_token)
            shared.log.add(RequestRecord(request.method, self._broker_id, path, query, authorized, body, looks))
        return shared.faults.next_for(request.method, self._broker_id, f"{path}?{query}" if query else path)

    def _refused(self, request: Request) -> bool:
        """Metrics are open to all, as with ``authenticateMetricsEndpoint=false``."""
        shared = self._shared
        open_to_all = shared.token is None or request.url.path.startswith("/metrics")
        known = self._bears(request, shared.token) or self._bears(request, shared.looking_token)
        return not open_to_all and not known

    @staticmethod
    def _bears(request: Request, token: str | None) -> bool:
        return token is not None and request.headers.get("authorization") == f"Bearer {token}"

    async def _instead(self, effect: Effect, request: Request, send: Send) -> None:
        if isinstance(effect, Answer):
            refused = effect.status != replies.DONE  # nothing may follow a 204
            answer = replies.Refusal(effect.status, effect.reason).response() if refused else replies.done()
            await answer(request.scope, request.receive, send)
        else:
            await self._reset(request)

    async def _worked(self, scope: Scope, body: bytes) -> list[Message]:
        """The broker's whole answer, kept back: what becomes of it depends on the fault."""
        answer: list[Message] = []

        async def given() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def kept(message: Message) -> None:
            answer.append(message)

        await self._app(scope, given, kept)
        return answer

    async def _sent(self, answer: list[Message], effect: Effect | None, request: Request, send: Send) -> None:
        match effect:
            case Drop():
                await self._reset(request)
                return
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case BrokenJson():
                answer = _shaped(answer, lambda body: body[: len(body) // 2])
            case Without():
                answer = _shaped(answer, lambda body: json.dumps(_without(json.loads(body), effect)).encode())
        if self._shared.compress and "gzip" in request.headers.get("accept-encoding", ""):
            answer = _compressed(answer)
        for message in answer:
            await send(message)

    async def _reset(self, request: Request) -> None:
        """Returns once the connection is gone: an application that returns sooner is blamed for not answering."""
        if request.client is not None:
            self._drop((request.client.host, request.client.port))
        await request.receive()


def _without(value: Any, effect: Without) -> Any:
    """A document without a member, or with the value in its place, at every depth."""
    if isinstance(value, list):
        return [_without(each, effect) for each in value]
    if not isinstance(value, dict):
        return value
    rest = {name: _without(each, effect) for name, each in value.items() if name != effect.member}
    return {**rest, effect.member: effect.instead} if effect.instead is not None and effect.member in value else rest


def _compressed(answer: list[Message]) -> list[Message]:
    if sum(len(message.get("body", b"")) for message in answer) < GZIP_FROM_BYTES:
        return answer
    return _shaped(answer, lambda body: gzip.compress(body, compresslevel=1, mtime=0), encoding="gzip")


def _shaped(answer: list[Message], change: Callable[[bytes], bytes], encoding: str | None = None) -> list[Message]:
    """The same answer with another body, and headers that fit it."""
    start = answer[0]
    body = change(b"".join(message.get("body", b"") for message in answer[1:]))
    headers = Headers(raw=start["headers"])
    response = Response(
        body, start["status"], {key: value for key, value in headers.items() if key != "content-length"}
    )
    if encoding is not None:
        response.headers["Content-Encoding"] = encoding
    return [{**start, "headers": response.raw_headers}, {"type": "http.response.body", "body": body}]
