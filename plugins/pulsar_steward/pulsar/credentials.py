"""Credentials of requests: headers that authenticate them, fixed or renewed (token file, OAuth2, plug-in).

A process has one object for the same settings, as threads and connections share the current token.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.logins import SENDABLE, token_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pulsar_steward.pulsar.logins import Basic

log = logging.getLogger(__name__)

AUTHORIZATION = "Authorization"
PLUGINS = "pulsar_steward.auth_headers"
"""Entry point group for callables that take a request's URL and return headers."""

RENEWED_AT_MOST_EVERY_SECONDS = 10.0
"""Shortest time between two renewals after a 401: if a new token is refused too, the reason is another one."""

_REMEMBERED = 4
"""Number of replaced tokens that are still masked, as a late response may repeat them."""


class Credential(ABC):
    """Headers that authenticate requests. For use by several threads."""

    @abstractmethod
    def headers(self, url: str) -> dict[str, str]:
        """Headers for a request to an address.

        Raises:
            StewardError: If there are none; contains the reason.
        """

    @property
    @abstractmethod
    def secrets(self) -> tuple[str, ...]:
        """Secrets to mask in responses."""

    def renewed(self, refused: Mapping[str, str]) -> bool:
        """True if there are new headers now, after a 401 refused the given ones."""
        return False


class Unchanging(Credential):
    """A fixed token, a user with a password, or nothing at all."""

    def __init__(self, header: str | None = None, *secrets: str) -> None:
        self._headers = {} if header is None else {AUTHORIZATION: header}
        self._secrets = secrets

    def headers(self, url: str) -> dict[str, str]:
        """As `Credential.headers`."""
        return dict(self._headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """As `Credential.secrets`."""
        return self._secrets


def basic(login: Basic) -> Unchanging:
    """Credential of HTTP basic authentication."""
    password = login.password.get_secret_value()
    sent = base64.b64encode(f"{login.username}:{password}".encode()).decode()
    return Unchanging(f"Basic {sent}", password, sent)


class Tokens(Credential):
    """Bearer tokens that replace each other."""

    def __init__(self, *secrets: str) -> None:
        self._always = secrets
        self._sent: deque[str] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self._renewed_at = float("-inf")

    def token(self) -> str:
        """Current token, or a new one when it is due."""
        with self._lock:
            token = self._present()
            self._note(token)
            return token

    def headers(self, url: str) -> dict[str, str]:
        """As `Credential.headers`."""
        return {AUTHORIZATION: f"Bearer {self.token()}"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """As `Credential.secrets`."""
        return (*self._always, *tuple(self._sent))

    def renewed(self, refused: Mapping[str, str]) -> bool:
        """As `Credential.renewed`; threads with refused headers at the same time renew once."""
        with self._lock:
            if self._sent and refused.get(AUTHORIZATION) != f"Bearer {self._sent[-1]}":
                return True
            now = time.monotonic()
            if now - self._renewed_at < RENEWED_AT_MOST_EVERY_SECONDS:
                return False
            self._renewed_at = now
            self._note(self._anew())
            return refused.get(AUTHORIZATION) != f"Bearer {self._sent[-1]}"

    def _note(self, token: str) -> None:
        if not self._sent or self._sent[-1] != token:
            self._sent.append(token)

    @abstractmethod
    def _present(self) -> str:
        """The token to send now."""

    @abstractmethod
    def _anew(self) -> str:
        """A token from its source, even if the current one looks valid."""


class TokenFile(Tokens):
    """The token in a file, which is read again after it was replaced or changed.

    Args:
        file: Path of the file.
        token: Its first content; used while the file cannot be read, for example on another machine.
    """

    def __init__(self, file: str, token: str) -> None:
        super().__init__(token)
        self._file = file
        self._token = token
        self._seen: tuple[int, int, int] | None = None

    def _present(self) -> str:
        return self._read() if self._looks() != self._seen else self._token

    def _anew(self) -> str:
        return self._read()

    def _looks(self) -> tuple[int, int, int] | None:
        try:
            found = Path(self._file).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read(self) -> str:
        self._seen = self._looks()
        if self._seen is None:
            return self._token
        try:
            token = token_in(self._file)
        except ConfigurationError as error:
            log.warning("%s; the token that it held before stays in use", error)
            return self._token
        if SENDABLE.fullmatch(token):
            self._token = token
        else:
            log.warning("the token file %s holds no token; the one that it held before stays in use", self._file)
        return self._token


class PluginHeaders(Credential):
    """Headers that a callable of another installed package returns."""

    def __init__(self, name: str) -> None:
        self._name = name
        found = list(entry_points(group=PLUGINS, name=name))
        if len(found) != 1:
            offered = "several installed packages offer" if found else "no installed package offers"
            raise ConfigurationError(
                f"`auth_plugin` names {name!r}, which {offered} as an entry point in the group {PLUGINS}"
            )
        self._call: Callable[[str], Mapping[str, str]] = found[0].load()
        self._sent: deque[str] = deque(maxlen=_REMEMBERED * 4)

    def headers(self, url: str) -> dict[str, str]:
        """As `Credential.headers`; called for each request, as the callable knows how long they are valid."""
        failure = ""
        try:
            made = dict(self._call(url))
            if all(_is_header(name, value) for name, value in made.items()):
                self._sent.extend(value for value in made.values() if value not in self._sent)
                return made
        except Exception as error:  # noqa: BLE001 - another package's code, whose messages may contain the secret
            failure = f": {type(error).__name__}"
        raise ConfigurationError(f"the plug-in {self._name!r} of `auth_plugin` returned no headers{failure}")

    @property
    def secrets(self) -> tuple[str, ...]:
        """As `Credential.secrets`; also each header's last word alone, such as a token after ``Bearer``."""
        values = tuple(self._sent)
        return (*values, *(value.rpartition(" ")[2] for value in values if " " in value))


def _is_header(name: object, value: object) -> bool:
    known = isinstance(name, str) and isinstance(value, str) and value == value.strip()
    return known and SENDABLE.fullmatch(str(name)) is not None and str(value).isascii() and str(value).isprintable()
