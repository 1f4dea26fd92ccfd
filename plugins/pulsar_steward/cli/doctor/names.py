"""Checks of ``steward doctor`` on names: that those in policies stand for something, and what is halted by name."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from pulsar_steward.cli.airflow_process import airflow_is_set_up, ask_airflow
from pulsar_steward.cli.doctor.line import fine, of_error, problem, unknown
from pulsar_steward.cli.known_names import CLUSTER, known_names
from pulsar_steward.cli.ledgers import is_ledger_known, opened_ledger
from pulsar_steward.cli.paths import snapshots_uri
from pulsar_steward.errors import ConfigurationError, LedgerError, PolicyError, SnapshotError
from pulsar_steward.ledger.halts import EVERY_CLUSTER, VARIABLE, halts_in_force
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.tables import ANSWERS
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold
from pulsar_steward.planners.unseen_names import names_in, unseen_names
from pulsar_steward.policy.files import policy_file, policy_files
from pulsar_steward.policy.load import load_policy
from pulsar_steward.snapshots.latest import SnapshotShelf

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.cli.doctor.line import Line
    from pulsar_steward.planners.unseen_names import UnseenNames
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

_MISSPELT = "correct what is misspelt, and take out what is gone"


def name_lines(named: Path | None, ledger: str | None) -> Iterator[Line]:
    """Compares the names in each policy with what the clusters that it is for were seen to have."""
    try:
        shelf = SnapshotShelf(snapshots_uri())
        seen = {name: found[0] for name in shelf.clusters() if (found := shelf.diagnosed(name))}
        known, answered = _by_ledger(ledger)
        files = {name: named or _used(name) for name in seen}
        for file in [named] if named else policy_files():
            yield from _of_file(file, {name: seen[name] for name in seen if files[name] == file}, known, answered)
    except PolicyError:
        return  # reported with the policies already
    except (SnapshotError, ConfigurationError) as error:
        yield of_error("names in policies", error)
    except OSError:
        return  # reported with the folder already


def halt_lines(ledger: str | None) -> Iterator[Line]:
    """Lists what is halted: by the ledger, and by the variable of this environment's Airflow, where that is set up."""
    known: Collection[str] = ()
    try:
        if is_ledger_known(ledger):
            with opened_ledger(ledger, only_read=True) as engine:
                known = known_names(engine)
                for halt in halts_in_force(engine):
                    if not known or halt.cluster in {EVERY_CLUSTER, *known}:
                        yield fine("halt", f"{halt.words} (`steward resume` ends it)")
                        continue
                    words = f"{halt.words}; no cluster of this name is known, so it stops nothing"
                    yield problem(
                        "halt", words, f"`steward resume {halt.cluster}`, and halt the cluster that was meant"
                    )
    except (LedgerError, ConfigurationError, OSError):
        pass  # reported with the ledger already
    if airflow_is_set_up():
        clusters = tuple(sorted(known)) or (os.environ.get(CLUSTER, "local"),)
        yield _by_variable(clusters, ask_airflow("halts", HaltsAsked(clusters=clusters), HaltsTold))


def _by_variable(clusters: Sequence[str], told: HaltsTold | None) -> Line:
    subject = f"variable {VARIABLE}"
    if told is None:
        return unknown(subject, "Airflow does not tell what it says", "run this where Airflow runs, with its settings")
    words = "; ".join(dict.fromkeys(told.reasons.values())) or f"it does not halt {', '.join(clusters)}"
    if told.understood:
        return fine(subject, words)
    return problem(subject, words, "name the clusters that are meant, or delete it")


def _of_file(
    file: Path, seen: Mapping[str, Snapshot], known: Collection[str], answered: Collection[str]
) -> Iterator[Line]:
    """Lines about the names in a policy file that is valid; another one has a line of its own already."""
    try:
        policy = load_policy(file)
    except PolicyError:
        return
    subject = f"names in {file.name}"
    lines = [*_strangers(subject, file, policy, known), *_unseen(subject, policy, seen)]
    yield from lines
    if silent := sorted(_users(policy) - set(answered)):
        yield fine(subject, f"nobody answered yet by these ids, which have to be Airflow's: {', '.join(silent)}")
    if not lines and seen and any(names_in(policy.for_cluster(name)) for name in seen):
        yield fine(subject, f"each stands for something that was seen in {', '.join(sorted(seen))}")


def _strangers(subject: str, file: Path, policy: Policy, known: Collection[str]) -> Iterator[Line]:
    """Problems of clusters that a policy is for, or has overrides for, and that nobody knows."""
    if not known:
        return
    if file.parent.name == "policies" and file.stem not in known:
        yield problem(subject, f"it is the policy of {file.stem}, and no cluster of this name is known", _MISSPELT)
    if strange := sorted(policy.clusters.keys() - set(known)):
        yield problem(subject, f"clusters: no cluster that is known is called {', '.join(strange)}", _MISSPELT)


def _unseen(subject: str, policy: Policy, seen: Mapping[str, Snapshot]) -> Iterator[Line]:
    """Problems of names that stand for nothing in any of the clusters for which they hold."""
    in_force: Counter[tuple[str, str]] = Counter()
    missing: Counter[tuple[str, str]] = Counter()
    told: dict[str, UnseenNames] = {}
    for cluster, snapshot in seen.items():
        limits = policy.for_cluster(cluster)
        in_force.update((key, name) for key, names in names_in(limits).items() for name in names)
        for each in unseen_names(snapshot, limits):
            missing.update((each.key, name) for name in each.names)
            told.setdefault(each.key, each)
    nowhere: defaultdict[str, list[str]] = defaultdict(list)
    for (key, name), number in sorted(missing.items()):
        if number == in_force[key, name]:
            nowhere[key].append(name)
    for key, names in nowhere.items():
        words = msgspec.structs.replace(told[key], names=tuple(names)).words
        yield problem(subject, words.rstrip("."), _MISSPELT)


def _users(policy: Policy) -> frozenset[str]:
    """Ids of all users that a policy names, for whichever cluster."""
    users: set[str] = set()
    for each in [policy, *map(policy.for_cluster, policy.clusters)]:
        approval = each.approval
        by_risk = (terms.users for terms in approval.by_risk.values())
        users.update(approval.assigned_users, *approval.assigned_users_by_kind.values(), *by_risk)
    return frozenset(users)


def _by_ledger(ledger: str | None) -> tuple[Collection[str], Collection[str]]:
    """Known clusters, and ids of people who ever answered; none where the ledger cannot be read."""
    try:
        if is_ledger_known(ledger):
            with opened_ledger(ledger, only_read=True) as engine, one_moment(engine) as connection:
                ids = connection.execute(select(ANSWERS.c.answered_by_id).distinct()).scalars()
                return known_names(engine), frozenset(each for each in ids if each)
    except (LedgerError, ConfigurationError, OSError):
        pass  # reported with the ledger already
    return (), ()


def _used(cluster: str) -> Path | None:
    """Policy file of a cluster; None: it has none, or none that is used, which has a line of its own already."""
    try:
        return policy_file(cluster)
    except PolicyError:
        return None
