"""Checks of ``steward doctor`` on a cluster: reachable brokers, rights of the token, and tested versions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pulsar_steward.cli.doctor.line import LineState, fine, of_error, problem, unknown
from pulsar_steward.cli.doctor.rights import change_lines, expiry_lines, rights, tried_once
from pulsar_steward.errors import AdminError, BrokenAnswer, ConfigurationError
from pulsar_steward.facts.load_manager import load_manager_of
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import EXTENSIBLE
from pulsar_steward.model.bundles import CALM_LOAD_MANAGER
from pulsar_steward.model.cluster import NamedCluster, identity_of
from pulsar_steward.model.pulsar_versions import Operation, objection_to
from pulsar_steward.model.units import counted, named
from pulsar_steward.pulsar import paths
from pulsar_steward.pulsar.faults import role_of
from pulsar_steward.pulsar.members import BEHIND_FRONT_DOOR
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.runtime.installed_files import document
from pulsar_steward.runtime.parallel import OnThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pulsar_steward.cli.doctor.line import Line
    from pulsar_steward.pulsar.settings import AdminSettings

T = TypeVar("T")

APART_MILLISECONDS = 5_000
"""Difference between a broker's clock and this machine's that is a problem; reading alone may add one second."""

MAX_CONCURRENT_BROKERS = 16

EACH_BROKER = (
    "each broker is asked by the address that the cluster lists: check that name, and the firewalls on the way there,"
    " or name the address that reaches it by --address-map ADVERTISED=URL"
)

FRONT_DOOR_REMEDY = (
    "ask whoever runs the balancer for an address of each broker, and name these by --address-map ADVERTISED=URL in"
    " place of --front-door, one by one or with * for all hosts"
)

VERSION_REMEDY = (
    "a check-up is safe, as it only reads: compare what it says with what you know;"
    f" {document('versions.md')} has what works where, and a version that you tried yourself may be named in the"
    " policy's guards.versions_tried_here"
)


class BrokerSeen(NamedTuple):
    """A broker's response, or the error instead of one."""

    broker: str
    version: str = ""
    ahead_milliseconds: int | None = None
    error: AdminError | None = None


def cluster_lines(
    settings: AdminSettings, change: AdminSettings | None = None, *, tried_here: Collection[str] = ()
) -> Iterator[Line]:
    """Checks the cluster, with calls that change nothing; each is tried once. The operator vouches for `tried_here`."""
    yield from expiry_lines(settings, "--token-file")
    once = tried_once(settings)
    asked = {url: _tried(partial(_version_at, replace(once, urls=(url,)))) for url in once.urls}
    answering = tuple(url for url, told in asked.items() if isinstance(told, str))
    for url, told in asked.items():
        subject = f"admin API {url}"
        if isinstance(told, str):
            yield fine(subject, f"answers, Pulsar {told}")
        else:
            yield of_error(subject, told, LineState.PROBLEM if answering else LineState.UNKNOWN)
    if not answering:
        return
    with Reader(replace(once, urls=answering)) as reader:
        yield from _of_cluster(reader, settings, change, tried_here)


def seen_cluster(settings: AdminSettings, name: str) -> NamedCluster | None:
    """The cluster that answers, under a name; None: it cannot be read, which other lines say."""
    try:
        with Reader(tried_once(settings)) as reader:
            return NamedCluster(name, identity_of(reader.runtime_configuration()), frozenset(reader.brokers()))
    except (AdminError, ConfigurationError):
        return None


def _version_at(settings: AdminSettings) -> str:
    """Version that an address answers with; a web server of another kind may answer as well, with a page."""
    with Reader(settings) as reader:
        version = reader.version()
    if version.startswith("<"):
        where = urlsplit(settings.bases[0]).netloc
        words = f"a page, and no version of Pulsar: {version[:40]!r}"
        raise BrokenAnswer("GET", f"{paths.BROKERS}/version", where, words)
    return version


def _of_cluster(
    reader: Reader, settings: AdminSettings, change: AdminSettings | None, tried_here: Collection[str]
) -> Iterator[Line]:
    configuration = _tried(reader.runtime_configuration)
    yield rights(reader, configuration, role_of(settings))
    yield from change_lines(reader, configuration, settings, change)
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

    def asked(broker: str) -> BrokerSeen:
        try:
            with reader.at(broker) as one:
                return BrokerSeen(broker, *one.version_and_clock())
        except AdminError as error:
            return BrokerSeen(broker, error=error)

    seen = OnThreads(MAX_CONCURRENT_BROKERS)(asked, listed)
    yield _brokers(seen)
    yield from _versions(seen, tried_here)
    yield from _clocks(seen)


def _tried(ask: Callable[[], T]) -> T | AdminError:
    try:
        return ask()
    except AdminError as error:
        return error


def _load_manager(configuration: dict[str, str]) -> Line:
    name, manager = configuration.get("loadManagerClassName", "").rpartition(".")[2], load_manager_of(configuration)
    if isinstance(manager, Unknown):
        words = f"{name or 'not told'}; {manager.reason}"
    elif manager.sheds:
        words = f"{name or 'not told'}, its own shedding is on ({manager.strategy.rpartition('.')[2]})"
    else:
        words = f"{name or 'not told'}, its own shedding is off"
    if CALM_LOAD_MANAGER in name or name == EXTENSIBLE:
        return fine("load manager", words)
    return problem(
        "load manager",
        f"{words}: Steward was tried with ModularLoadManagerImpl and {EXTENSIBLE} only",
        "a check-up is safe, as it only reads; approve no moves before you tried them on a cluster that may break",
    )


def _brokers(seen: Sequence[BrokerSeen]) -> Line:
    silent = [each for each in seen if each.error is not None]
    if not silent:
        answer = "answers" if len(seen) == 1 else "answer"
        return fine("brokers", f"{len(seen)} of {counted(len(seen), 'listed broker')} {answer}")
    told = named([f"{each.broker} ({each.error.reason if each.error else ''})" for each in silent])
    do = "does" if len(silent) == 1 else "do"
    words = f"{len(silent)} of {counted(len(seen), 'listed broker')} {do} not answer: {told}"
    if len(silent) == len(seen):
        return unknown("brokers", words, EACH_BROKER)
    return problem("brokers", words, f"{EACH_BROKER}; without them a snapshot is partial, and nothing is changed")


def _versions(seen: Sequence[BrokerSeen], tried_here: Collection[str]) -> Iterator[Line]:
    versions = Counter(each.version for each in seen if each.error is None)
    words = ", ".join(f"{version} on {counted(number, 'broker')}" for version, number in sorted(versions.items()))
    refused: dict[str, list[Operation]] = {}
    for version in sorted(versions):
        for operation in Operation:
            if reason := objection_to(operation, version, tried_here):
                refused.setdefault(reason, []).append(operation)
    upgrading = ["finish the upgrade before anything is approved"] if len(versions) > 1 else []
    if refused:
        every = len(Operation)
        told = "; ".join(
            f"{'every change' if len(operations) == every else ', '.join(operations)}: {reason}"
            for reason, operations in refused.items()
        )
        yield problem("version", f"{words}. Refused there: {told}", "; ".join([*upgrading, VERSION_REMEDY]))
    elif upgrading:
        yield problem("version", words, *upgrading)
    elif versions:
        yield fine("version", words)


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
