"""Addresses and credentials of a cluster from the command line's options (docs/reaching-a-cluster.md)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pulsar_steward.cli.option_groups import option
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.logins import basic_in, oauth2_in, token_in
from pulsar_steward.pulsar.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from pulsar_steward.pulsar.logins import Login


def options_given(options: msgspec.Struct) -> frozenset[str]:
    """Names of a struct's options that were given."""
    fields = msgspec.structs.fields(options)
    given = [field.name for field in fields if getattr(options, field.name) not in (field.default, [])]
    return frozenset(f"--{name.replace('_', '-')}" for name in given)


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How a cluster is reached, and with which credentials.

    Attributes:
        token_file: Read again when it changes; None: the variable `TOKEN_VARIABLE`, or no token.
        token_variable: False if the variable with a token is about other credentials.
    """

    token_file: Annotated[
        Path | None,
        option("FILE", "Holds a superuser's token.  [default: the variable STEWARD_ADMIN_TOKEN]"),
    ] = None
    ca_file: Annotated[Path | None, option("FILE", "Certificates to trust for https.")] = None
    allow_unencrypted_token: Annotated[
        bool, typer.Option("--allow-unencrypted-token", help="Lets the token go over http:// to another machine.")
    ] = False
    client_cert: Annotated[Path | None, option("FILE", "A certificate that says who is asking (mutual TLS).")] = None
    client_key: Annotated[Path | None, option("FILE", "The key of --client-cert.")] = None
    oauth2_file: Annotated[
        Path | None, option("FILE", "JSON of client_id, client_secret, issuer_url, audience, scope.")
    ] = None
    basic_file: Annotated[Path | None, option("FILE", "user:password, for basic authentication.")] = None
    address_map: Annotated[
        list[str] | None,
        option("ADVERTISED=URL", "Reaches the broker that lists itself so by this URL; repeatable."),
    ] = None
    proxy: Annotated[str | None, option("URL", "A forward proxy, http://host:port, for all calls.")] = None
    front_door: Annotated[
        bool,
        typer.Option("--front-door", help="The addresses are a balancer's or proxy's: no broker can be asked itself."),
    ] = False
    token_variable: bool = True

    def token(self) -> str | None:
        """The token; None: there is none.

        Raises:
            ConfigurationError: If it cannot be read, or several kinds of credentials are given.
        """
        ways = {"--token-file": self.token_file, "--oauth2-file": self.oauth2_file, "--basic-file": self.basic_file}
        named = [option for option, file in ways.items() if file is not None]
        if len(named) > 1:
            raise ConfigurationError(f"{' and '.join(named)} are several kinds of credentials: give one of them")
        if self.token_file is not None:
            return token_in(self.token_file)
        return None if named or not self.token_variable else os.environ.get(TOKEN_VARIABLE) or None

    def login(self) -> Login | None:
        """Credentials that are no token; None: there are none.

        Raises:
            ConfigurationError: If they cannot be read.
        """
        if self.oauth2_file is not None:
            return oauth2_in(self.oauth2_file)
        return None if self.basic_file is None else basic_in(self.basic_file)

    def origin(self) -> str:
        """Option or variable that the credentials are from; without any, what would give some."""
        prefix = "--" if self.token_variable else "--change-"
        files = {
            "token-file": self.token_file,
            "oauth2-file": self.oauth2_file,
            "basic-file": self.basic_file,
            "client-cert": None if self.token_variable and os.environ.get(TOKEN_VARIABLE) else self.client_cert,
        }
        if given := [f"{prefix}{option} {file}" for option, file in files.items() if file is not None]:
            return given[0]
        if not self.token_variable:
            return f"{prefix}token-file"
        variable = f"the variable {TOKEN_VARIABLE}"
        return variable if os.environ.get(TOKEN_VARIABLE) else f"--token-file, or by {variable}"

    def secrets(self) -> tuple[str, ...]:
        """Secrets among the credentials, to be masked wherever they come back.

        Raises:
            ConfigurationError: If they cannot be read.
        """
        token, login = self.token(), self.login()
        return (*((token,) if token is not None else ()), *(login.secrets if login is not None else ()))


CREDENTIALS = frozenset({"--token-file", "--oauth2-file", "--basic-file"})
"""Options whose secrets are masked in what is read, a cluster or not."""


class ChangeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a cluster is changed, where that is not how it is looked at."""

    change_admin_url: Annotated[
        list[str] | None, option("URL", "Where the cluster is changed.  [default: as --admin-url]")
    ] = None
    change_token_file: Annotated[
        Path | None, option("FILE", "Holds the token of a role that may change the cluster.")
    ] = None
    change_oauth2_file: Annotated[Path | None, option("FILE", "As --oauth2-file, to change the cluster.")] = None
    change_basic_file: Annotated[Path | None, option("FILE", "As --basic-file, to change the cluster.")] = None
    change_client_cert: Annotated[Path | None, option("FILE", "As --client-cert, to change the cluster.")] = None
    change_client_key: Annotated[Path | None, option("FILE", "The key of --change-client-cert.")] = None

    def is_given(self) -> bool:
        """True if addresses or credentials of its own are named."""
        credentials = (self.change_token_file, self.change_oauth2_file, self.change_basic_file, self.change_client_cert)
        return bool(self.change_admin_url) or any(credentials)

    def after(self, looking: ClusterAccess) -> ClusterAccess:
        """The access for changing: reached as for looking, with credentials of its own."""
        return msgspec.structs.replace(
            looking,
            token_file=self.change_token_file,
            client_cert=self.change_client_cert,
            client_key=self.change_client_key,
            oauth2_file=self.change_oauth2_file,
            basic_file=self.change_basic_file,
            token_variable=False,
        )
