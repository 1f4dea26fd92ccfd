"""Checks of ``steward doctor`` on a cluster: reachable brokers, rights of the token, and tested versions."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pulsar_steward.admin.logins import Basic, ClientCredentials
from pulsar_steward.admin.members import BEHIND_FRONT_DOOR
from pulsar_steward.admin.reader import Reader
from pulsar_steward.cli.doctor.line import State, fine, of_error, problem, unknown
from pulsar_steward.cli.errors import remedy_of
from pulsar_steward.errors import AdminError, NotAllowed
from pulsar_steward.model.bundles import CALM_LOAD_MANAGER
from pulsar_steward.model.units import counted
from pulsar_steward.parallel import OnThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.cli.doctor.line import Line

T = TypeVar("T")

TRIED_VERSIONS = ("4.0.7", "4.2.4")
"""Versions of real brokers with which the contracts of the admin API are tested (tests/contract)."""

APART_MILLISECONDS = 5_000
"""Difference between a broker's clock and this machine's that is a problem; reading alone may add one second."""

MAX_CONCURRENT_BROKERS = 16
NAMED_AT_MOST = 5

EACH_BROKER = (
    "each broker is asked by the address that the cluster lists: check that name, and the firewalls on the way there,"
    " or name the address that reaches it by --address-map ADVERTISED=URL"
)

FRONT_DOOR_REMEDY = (
    "ask whoever runs the balancer for an address of each broker, and name these by --address-map ADVERTISED=URL in"
    " place of --front-door, one by one or with * for all hosts"
)


class BrokerSeen(NamedTuple):
    """A broker's response, or the error instead of one."""

    broker: str
    version: str = ""
    ahead_milliseconds: int | None = None
    error: AdminError | None = None


def cluster_lines(settings: AdminSettings) -> Iterator[Line]:
    """Checks the cluster, with calls that change nothing; each is tried once."""
    once = replace(settings, limits=settings.limits.model_copy(update={"read_attempts": 1}))
    asked = {url: _tried(partial(_version_at, replace(once, urls=(url,)))) for url in once.urls}
    answering = tuple(url for url, told in asked.items() if isinstance(told, str))
    for url, told in asked.items():
        subject = f"admin API {url}"
        if isinstance(told, str):
            yield fine(subject, f"answers, Pulsar {told}")
        else:
            yield of_error(subject, told, State.PROBLEM if answering else State.UNKNOWN)
    if not answering:
        return
    with Reader(replace(once, urls=answering)) as reader:
        yield from _of_cluster(reader, settings)


def _version_at(settings: AdminSettings) -> str:
    with Reader(settings) as reader:
        return reader.version()


def _of_cluster(reader: Reader, settings: AdminSettings) -> Iterator[Line]:
    configuration = _tried(reader.runtime_configuration)
    yield _rights(reader, configuration, role_of(settings))
    if not isinstance(configuration, AdminError):
        yield _load_manager(configuration)
    listed = _tried(reader.brokers)
    if isinstance(listed, AdminError):
        yield of_error("brokers", listed)
        return
    if settings.front_door:
        words = f"{counted(len(listed), 'broker')} listed, and none was asked: {BEHIND_FRONT_DOOR}"
        yield problem(
            "brokers", f"{words}. There is no check-up of the brokers, and nothing is changed", FRONT_DOOR_REMEDY
        )
        return
    seen = OnThreads(MAX_CONCURRENT_BROKERS)(lambda broker: _asked(reader, broker), listed)
    yield _brokers(seen)
    yield from _versions(seen)
    yield from _clocks(seen)


def _tried(ask: Callable[[], T]) -> T | AdminError:
    try:
        return ask()
    except AdminError as error:
        return error


def role_of(settings: AdminSettings) -> str:
    """The token's role: the subject of a JSON web token, whose signature is not verified."""
    if settings.login is not None or settings.token is None:
        return _by_login(settings)
    try:
        payload = settings.token.get_secret_value().split(".")[1]
        subject = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
    except (ValueError, LookupError, TypeError):
        return "by a token that names nobody"
    return f"by a token for {subject!r}"


def _by_login(settings: AdminSettings) -> str:
    login = settings.login
    if isinstance(login, Basic):
        return f"as user {login.username!r}, by a password"
    if isinstance(login, ClientCredentials):
        return f"by an access token that {login.url} gave to client {login.client_id!r}"
    if login is not None:
        return f"by headers of the plug-in {login.name!r}"
    return "by a client certificate" if settings.client_cert_file else "without a token"


def _rights(reader: Reader, configuration: dict[str, str] | AdminError, role: str) -> Line:
    if not isinstance(configuration, AdminError):
        if "false" in {configuration.get("authenticationEnabled"), configuration.get("authorizationEnabled")}:
            return fine("rights", f"{role}; the cluster asks nobody who they are, or lets all do everything")
        return fine("rights", f"{role}, with a superuser's rights: a check-up can read all that it needs")
    if not isinstance(configuration, NotAllowed):
        return of_error("rights", configuration)
    asked: dict[str, Callable[[], object]] = {
        "the list of brokers": reader.brokers,
        "the list of tenants": reader.tenants,
        "a broker's load": reader.load_report,
    }
    refused = [name for name, ask in asked.items() if isinstance(_tried(ask), AdminError)]
    may = [name for name in asked if name not in refused]
    told = f"{role}, without a superuser's rights: a broker's configuration may not be read ({configuration.status})"
    words = f"{told}; what may be: {', '.join(may) or 'nothing that was asked for'}"
    return problem("rights", words, remedy_of(configuration))


def _load_manager(configuration: dict[str, str]) -> Line:
    name = configuration.get("loadManagerClassName", "").rpartition(".")[2]
    sheds = "on" if configuration.get("loadBalancerSheddingEnabled") == "true" else "off"
    words = f"{name or 'not told'}, its own shedding is {sheds}"
    if CALM_LOAD_MANAGER in name:
        return fine("load manager", words)
    return problem(
        "load manager",
        f"{words}: Steward was tried with ModularLoadManagerImpl only",
        "a check-up is safe, as it only reads; approve no moves before you tried them on a cluster that may break",
    )


def _asked(reader: Reader, broker: str) -> BrokerSeen:
    try:
        with reader.at(broker) as one:
            return BrokerSeen(broker, one.version(), one.clock_skew_milliseconds())
    except AdminError as error:
        return BrokerSeen(broker, error=error)


def _brokers(seen: Sequence[BrokerSeen]) -> Line:
    silent = [each for each in seen if each.error is not None]
    if not silent:
        return fine("brokers", f"{len(seen)} of {counted(len(seen), 'listed broker')} answer")
    named = [f"{each.broker} ({each.error.reason if each.error else ''})" for each in silent[:NAMED_AT_MOST]]
    more = f" and {len(silent) - len(named)} more" if len(silent) > len(named) else ""
    words = f"{len(silent)} of {counted(len(seen), 'listed broker')} do not answer: {', '.join(named)}{more}"
    if len(silent) == len(seen):
        return unknown("brokers", words, EACH_BROKER)
    return problem("brokers", words, f"{EACH_BROKER}; without them a snapshot is partial, and nothing is changed")


def _versions(seen: Sequence[BrokerSeen]) -> Iterator[Line]:
    versions = Counter(each.version for each in seen if each.error is None)
    strange = [version for version in versions if _series(version) not in set(map(_series, TRIED_VERSIONS))]
    words = ", ".join(f"{version} on {counted(number, 'broker')}" for version, number in sorted(versions.items()))
    if strange:
        yield problem(
            "version",
            f"{words}: Steward was tried with {' and '.join(TRIED_VERSIONS)}",
            "a check-up is safe, as it only reads: compare what it says with what you know, before approving anything",
        )
    elif len(versions) > 1:
        yield problem("version", words, "finish the upgrade before anything is approved")
    elif versions:
        yield fine("version", words)


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _clocks(seen: Sequence[BrokerSeen]) -> Iterator[Line]:
    ahead = {each.broker: each.ahead_milliseconds for each in seen if each.ahead_milliseconds is not None}
    if not ahead:
        return
    broker, most = max(ahead.items(), key=lambda item: abs(item[1]))
    if abs(most) < APART_MILLISECONDS:
        yield fine("clock", f"within {abs(most) / 1000:,.1f} s of {counted(len(ahead), 'broker')}, read to ±1 s")
        return
    words = f"that of {broker} is {abs(most) / 1000:,.1f} s {'ahead of' if most > 0 else 'behind'} this machine's"
    remedy = "have both follow the same time servers (NTP): approvals, time to live and age quotas go by clocks"
    yield problem("clock", words, remedy)
