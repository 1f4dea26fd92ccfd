"""A small OAuth2 issuer on loopback: gives tokens, has them end, and refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pulsar_steward.pulsar import oauth2
from tests.unit.pulsar.scripted import ScriptedBroker, answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.pulsar.scripted import Handler, Reply

DISCOVERY = "/.well-known/openid-configuration"
TOKEN_PATH = "/oauth/token"


class Issuer:
    """One issuer.

    Args:
        server: Answers for it.
        tokens: Given one after the other, the last one again and again; or makes one whenever it is asked.
        secret: Of its only client, ``steward``.
    """

    def __init__(self, server: ScriptedBroker, tokens: list[str] | Callable[[], str], secret: str) -> None:
        self.server = server
        self.tokens = tokens
        self.secret = secret
        self.expires_in: float | None = 3600
        self.asked: list[dict[str, list[str]]] = []
        self.given: list[str] = []
        # Tokens are kept for a process by their issuer's address, and an earlier issuer may have had this port.
        oauth2._credential_of.cache_clear()
        server.on(DISCOVERY, answer({"token_endpoint": f"{server.url}{TOKEN_PATH}"}))
        server.on(TOKEN_PATH, self.reply())

    @property
    def url(self) -> str:
        """``http://host:port``."""
        return self.server.url

    def reply(self) -> Reply:
        """Gives the next token to the client, and refuses anybody else."""

        def reply(handler: Handler) -> None:
            form = parse_qs(self.server.asked[-1].body.decode())
            self.asked.append(form)
            if form.get("client_id") != ["steward"] or form.get("client_secret") != [self.secret]:
                told = f"no client has the secret {''.join(form.get('client_secret', []))}"
                answer({"error": "invalid_client", "error_description": told}, status=401)(handler)
                return
            self.given.append(self._next())
            document = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.expires_in}
            answer(document)(handler)

        return reply

    def _next(self) -> str:
        if not isinstance(self.tokens, list):
            return self.tokens()
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
