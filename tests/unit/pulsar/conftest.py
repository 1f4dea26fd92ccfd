"""Scripted brokers, an address that refuses, and settings towards them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.transport import Transport
from tests.unit.pulsar.scripted import ScriptedBroker, scripted_brokers

TOKEN = "a-made-up-token"

MakeTransport = Callable[..., Transport]
MakeSettings = Callable[..., AdminSettings]
MakeBroker = Callable[[], ScriptedBroker]
Pair = tuple[ScriptedBroker, ScriptedBroker]


@pytest.fixture
def make_broker() -> Iterator[MakeBroker]:
    """Starts scripted brokers and ends them after the test."""
    with scripted_brokers() as make:
        yield make


@pytest.fixture
def broker(make_broker: MakeBroker) -> ScriptedBroker:
    return make_broker()


@pytest.fixture
def refusing() -> Iterator[str]:
    """``host:port`` where connections are refused: bound, so nobody else gets it, but not listening."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def settings() -> MakeSettings:
    """Makes settings with a token that may go to made-up hosts; the keywords are the policy's, also with fractions."""

    def make(*urls: str, **limits: float) -> AdminSettings:
        policy = AdminPolicy.model_copy(AdminPolicy(), update=limits)
        return AdminSettings(urls, SecretStr(TOKEN), policy, allow_unencrypted_token=True)

    return make


@pytest.fixture
def transport(settings: MakeSettings) -> Iterator[MakeTransport]:
    """Makes transports that may send anything and are closed after the test."""
    with ExitStack() as transports:

        def make(*urls: str, **limits: float) -> Transport:
            made = Transport(settings(*urls, **limits), frozenset({"GET", "PUT", "POST", "DELETE"}))
            return transports.enter_context(made)

        yield make
