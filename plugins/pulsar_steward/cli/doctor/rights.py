"""Checks of ``steward doctor`` on rights: whom a cluster takes us for, what that role may read, whether it may change.

Pulsar has no call that tells what a role may do, so what may be read is read. Nothing is changed to find out about
changes: unloads and splits are for whoever may read a broker's load report, as brokers check both in the same way
(docs/permissions.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_steward.cli.doctor.line import fine, of_error, problem
from pulsar_steward.errors import AdminError, ConfigurationError, NotAllowed
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.cluster import identity_of
from pulsar_steward.model.units import time_in_words
from pulsar_steward.pulsar.faults import expired_at, role_of
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pulsar_steward.cli.doctor.line import Line
    from pulsar_steward.pulsar.settings import AdminSettings

CHANGING = "rights to change"
NAMED_AT_MOST = 3
NO_CHECKS = frozenset({"authenticationEnabled", "authorizationEnabled"})

_PERMISSIONS = f"{document('permissions.md')} says what each call needs"
_CHANGE_REMEDY = f"give a superuser's credentials by --change-token-file or the like; {_PERMISSIONS}"
_ONE_CONNECTION = (
    "these credentials may change the cluster as well: a connection with them serves to look and to change. For two,"
    f" `pulsar_admin_<cluster>` and `pulsar_change_<cluster>`, see {document('permissions.md')}"
)


def tried_once(settings: AdminSettings) -> AdminSettings:
    """The same settings for calls that are not repeated."""
    return replace(settings, limits=settings.limits.model_copy(update={"read_attempts": 1}))


def expiry_lines(settings: AdminSettings, option: str) -> Iterator[Line]:
    """Says that a JSON web token has expired: brokers only answer that it is not accepted."""
    until = expired_at(settings.token.get_secret_value()) if settings.token else None
    if until is not None:
        words = f"the one {role_of(settings).removeprefix('by a token ')} expired at"
        remedy = f"have a new one made, and give it by {option}"
        yield problem("token", f"{words} {time_in_words(until)}", remedy)


def rights(reader: Reader, configuration: Mapping[str, str] | AdminError, role: str) -> Line:
    """Whether a check-up may read all that it needs."""
    if isinstance(configuration, AdminError) and not isinstance(configuration, NotAllowed):
        return of_error("rights", configuration)
    if not isinstance(configuration, AdminError) and asks_nobody(configuration):
        return fine("rights", f"{role}; the cluster asks nobody who they are, or lets all do everything")
    answers = {name: _answer(ask) for name, ask in _needed(reader, configuration).items()}
    refused = [name for name, answer in answers.items() if isinstance(answer, NotAllowed)]
    if isinstance(configuration, AdminError):
        refused = ["a broker's configuration", *refused]
    may = [name for name, answer in answers.items() if not isinstance(answer, Exception)]
    if not refused:
        return fine("rights", f"{role}, with a superuser's rights: a check-up can read all that it needs")
    told = f"{role}, without a superuser's rights: what may not be read: {', '.join(refused)}"
    remedy = f"give a superuser's token by --token-file; {_PERMISSIONS}"
    return problem("rights", f"{told}; what may be: {', '.join(may) or 'nothing that was asked for'}", remedy)


def change_lines(
    reader: Reader, configuration: Mapping[str, str] | AdminError, looking: AdminSettings, change: AdminSettings | None
) -> Iterator[Line]:
    """Whether the cluster may be changed: by the credentials for that, if any are given, or by those that look."""
    if change is None:
        yield _by_one(reader, configuration)
        return
    yield from expiry_lines(change, "--change-token-file")
    try:
        with Reader(tried_once(change)) as changing:
            told = changing.runtime_configuration()
            changing.load_report()
            cluster, brokers = identity_of(told), changing.brokers()
        other = None if isinstance(configuration, AdminError) else identity_of(configuration)
    except NotAllowed as error:
        yield problem(CHANGING, f"not allowed: {error}", _CHANGE_REMEDY)
        return
    except (AdminError, ConfigurationError) as error:
        yield of_error(CHANGING, error)
        return
    listed = _answer(reader.brokers)
    strangers = isinstance(listed, tuple) and not set(listed) & set(brokers)
    if strangers or (other is not None and not cluster.is_same(other)):
        yield problem(
            CHANGING,
            f"the addresses lead to two clusters: {cluster} with {', '.join(brokers[:NAMED_AT_MOST])} to change, and"
            f" {other or 'another one'} to look at",
            "name addresses of the same cluster by --change-admin-url, or none, as those of --admin-url hold then",
        )
    elif _secret(change) == _secret(looking) and not asks_nobody(told):
        yield problem(
            CHANGING,
            f"{role_of(change)}, the same credentials as for looking: whoever may look may change",
            f"give looking credentials of its own; {_PERMISSIONS}",
        )
    else:
        words = "everybody may" if asks_nobody(told) else "with a superuser's rights"
        yield fine(
            CHANGING,
            f"{role_of(change)}, {words}: bundles may be moved and split, and settings changed. Found out by reading"
            " alone, so that a gateway on the way may still let no change through",
        )


def _by_one(reader: Reader, configuration: Mapping[str, str] | AdminError) -> Line:
    if not isinstance(configuration, AdminError) and asks_nobody(configuration):
        return fine(CHANGING, "everybody may change the cluster, so one connection does")
    answer = _answer(reader.load_report)
    if isinstance(answer, NotAllowed):
        return fine(
            CHANGING,
            "these credentials may move and split no bundles: approved changes need others, in"
            " `pulsar_change_<cluster>` (--change-token-file tries them)",
        )
    return of_error(CHANGING, answer) if isinstance(answer, AdminError) else fine(CHANGING, _ONE_CONNECTION)


def _needed(reader: Reader, configuration: Mapping[str, str] | AdminError) -> dict[str, Callable[[], object]]:
    """Calls of a check-up, one for each permission that Pulsar checks."""
    needed: dict[str, Callable[[], object]] = {
        "the list of brokers": reader.brokers,
        "the leader": reader.leader,
        "the list of tenants": reader.tenants,
        "a broker's load": reader.load_report,
        "a tenant's namespaces": lambda: reader.namespaces(TC_NAMESPACE.partition("/")[0]),
        "a namespace's settings": lambda: reader.namespace_policies(TC_NAMESPACE),
    }
    if isinstance(configuration, AdminError) or not (cluster := configuration.get("clusterName")):
        return needed
    return {
        **needed,
        "what a broker owns": lambda: reader.owned_bundles(cluster, reader.brokers()[0]),
        "isolation policies": lambda: reader.isolation_policies(cluster),
    }


def asks_nobody(configuration: Mapping[str, str]) -> bool:
    """True if a cluster with this configuration lets everybody do everything."""
    return any(configuration.get(name) == "false" for name in NO_CHECKS)


def _answer(ask: Callable[[], object]) -> object:
    """Answer of a call, or its error; a broker that is not there any more is no matter of rights."""
    try:
        return ask()
    except (AdminError, IndexError) as error:
        return error


def _secret(settings: AdminSettings) -> object:
    token = settings.token.get_secret_value() if settings.token else None
    return token, settings.login, settings.client_cert_file
