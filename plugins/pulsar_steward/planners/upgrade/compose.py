"""Report on the upgrade of a cluster: what is in the way, what is gone, what changes, and the order to do it in."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.pulsar_versions import NONE, UNKNOWN, line_of, trouble_of
from pulsar_steward.model.units import MAX_NAMES, counted, named, seconds_in_words
from pulsar_steward.planners.restarts.judge import FAILOVER, RISKS, reasons_of_checks
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.facts import PAUSED, versions_of
from pulsar_steward.planners.upgrade.model import (
    APPLICATIONS,
    GUIDE,
    MIGRATION,
    ROLLING,
    SEQUENCE,
    TARGET,
    Part,
    UpgradeLine,
    UpgradeReport,
    pip,
    pull,
)
from pulsar_steward.planners.upgrade.settings import lines_of_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.planners.upgrade.facts import UpgradeFacts

_LEAST_JAVA = 21

_JAVA = re.compile(r"Java (?:1\.)?\d{1,3}")
"""Beginning of the subject of a line on Java."""


def upgrade_report(facts: UpgradeFacts) -> UpgradeReport:
    """The report on a cluster's upgrade."""
    parts = (_blocking, _gone, lines_of_settings, _java, _clients, _metadata)
    found = [line for part in parts for line in part(facts)]
    every = [*found, *_order(facts, found)]
    return UpgradeReport(
        cluster=facts.meta.cluster,
        snapshot_id=facts.meta.snapshot_id,
        versions=versions_of(facts.brokers),
        unread=facts.meta.unread,
        lines=tuple(each for part in Part for each in every if each.part is part),
    )


def _blocking(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    """What speaks against a restart of any broker, also before long; old Java."""
    for each in reasons_of_checks(facts.restarts):
        state = State.STOP if each.state is State.SOON else each.state
        yield _line(Part.BLOCKS, each.subject, each.words, each.source, state=state)
    verdicts = facts.restarts.verdicts
    if clear := [each for each in RISKS if each in verdicts and verdicts[each].outlook is Outlook.CLEAR]:
        yield _line(Part.BLOCKS, "clear", f"{', '.join(clear)}.", "docs/checks")


def _gone(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    for each in facts.brokers:
        if not each.pulsar_version or not line_of(each.pulsar_version):
            words = "nothing of it is judged."
            yield _line(Part.BLOCKS, f"version of {each.broker}", words, "docs/versions.md", state=State.UNKNOWN)
    old = [each.name for each in facts.namespaces if each.name.count("/") > 1]
    subject, words = "names of V1 (tenant/cluster/namespace)", "no namespace has one."
    if old:
        words = f"{counted(len(old), 'namespace')} cannot be used any more: {named(old)}."
    yield _line(Part.GONE, subject, words, pip(457), state=State.STOP if old else State.NOTE)
    for subject, words, source in (
        ("calls of V1", "/admin/namespaces, /admin/persistent and /lookup with a cluster in the path", pull(25304)),
        ("statsProviderClass of bookies", "take org.apache.bookkeeper.stats.prometheus", GUIDE),
        ("image pulsar-all", "take apachepulsar/pulsar, and connectors by themselves", GUIDE),
    ):
        yield _line(Part.GONE, subject, f"{words}. Whether it is in use is not told.", source)


def _java(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    """Java of brokers: each version, of which an old one stops the upgrade, and brokers that do not tell theirs."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for broker in sorted(facts.lines):
        alike[facts.java.get(broker, "")].append(broker)
    for version, brokers in sorted(alike.items()):
        subject, on = f"Java {version}".strip(), named(brokers)
        major = re.match(r"(?:1\.)?(\d{1,3})", version)
        if major is None:
            words = f"5.0 needs {_LEAST_JAVA} or newer, best 25 with ZGC ({on})."
            yield _line(Part.VERSIONS, subject, words, GUIDE, state=State.UNKNOWN)
        elif int(major[1]) < _LEAST_JAVA:
            words = f"5.0 needs {_LEAST_JAVA} or newer, best 25 with ZGC: install it, or take the official image, which"
            yield _line(Part.BLOCKS, subject, f"{words} brings its own ({on}).", GUIDE, state=State.STOP)
        else:
            yield _line(Part.VERSIONS, subject, f"new enough ({on}).", GUIDE)
    words = "bookies, proxies and functions need 21, clients 17 once their library is of 5.0."
    yield _line(Part.VERSIONS, "Java elsewhere", words, APPLICATIONS, state=State.UNKNOWN)


def _clients(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    if not facts.clients:
        yield _line(Part.VERSIONS, "clients", "none was connected.", APPLICATIONS, state=State.UNKNOWN)
        return
    versions = named([f"{each.version or 'no version'} ({each.clients:,})" for each in facts.clients])
    yield _line(Part.VERSIONS, "clients", f"{versions}. 5.0 asks for no newer ones.", APPLICATIONS)
    for each in facts.clients:
        trouble = trouble_of(each.version)
        number, known = counted(each.clients, "client"), "docs/checks/client-versions.md"
        if each.version == NONE:
            yield _line(Part.VERSIONS, "no version", f"{number}, {UNKNOWN}.", known)
        elif trouble is not None:
            words = f"{number} to renew before restarts make them reconnect: {trouble.words} ({trouble.source})."
            yield _line(Part.VERSIONS, each.version, words, known)


def _metadata(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    scheme, nodes = facts.meta.metadata_store, facts.metadata_nodes
    if scheme == "zk":
        size = f", with {counted(nodes, 'node')}" if nodes else ""
        words = (
            f"it stays{size}. A move to Oxia is a step of its own after the"
            " upgrade (`pulsar-admin metadata-migration`). It needs bookies with metadata-store: in metadataServiceUri,"
            " which is not told, and leaves out a configuration store apart."
        )
        yield _line(Part.METADATA, "ZooKeeper", words, pip(454), MIGRATION)
    elif scheme == "oxia":
        yield _line(Part.METADATA, "Oxia", "it stays.", pip(454))
    elif scheme == "etcd":
        words = "5.0 has none, and its migration reads none: move to ZooKeeper or Oxia before."
        yield _line(Part.METADATA, "etcd", words, pip(462), GUIDE, state=State.STOP)
    else:
        words = f"{scheme or 'which it is'}; 5.0 has no etcd any more, ZooKeeper and Oxia stay."
        yield _line(Part.METADATA, "metadataStoreUrl", words, pip(462), state=State.UNKNOWN)


def _order(facts: UpgradeFacts, found: list[UpgradeLine]) -> Iterator[UpgradeLine]:
    """Steps, the first ones as far as this cluster needs them."""
    stops = [each.subject for each in found if each.state is State.STOP and not _JAVA.match(each.subject)]
    old = sorted({it[0] for each in found if each.state is State.STOP and (it := _JAVA.match(each.subject))})
    first = [", ".join(stops)] if stops else []
    first += [f"brokers run {' and '.join(old)}, which {TARGET} does not support"] if old else []
    unknown = [each.subject for each in found if each.state is State.UNKNOWN and each.part is Part.BLOCKS]
    early = sorted({line for line in facts.lines.values() if line.startswith("3.")})
    base = f"From {named(early)} go to the newest 4.0.x" if early else "Go to the newest release of your line"
    pause, resume = _paused(facts)
    for words, source in (
        (first and f"Fix first: {'; '.join(first)}.", GUIDE),
        (unknown and f"Look yourself at: {', '.join(unknown)}.", GUIDE),
        (f"{base} first and run it for a while. You would go back to it: rehearse that.", GUIDE),
        ("Write into broker.conf what shall stay, and scalableTopicsEnabled=false for a way back.", GUIDE),
        ("Install Java 25; take away options that choose a garbage collector.", GUIDE),
        ("Bookies one at a time, a first one for a while; autorecovery is disabled meanwhile.", SEQUENCE),
        (pause, ROLLING),
        (f"Brokers one at a time, by SIGTERM: {_brokers(facts)}.", ROLLING),
        ("Before each ask `steward may-restart BROKER`.", "docs/restart.md"),
        ("After each wait for its health check, its load report, and clients of those that took over.", ROLLING),
        (f"{resume}Proxies and functions, and clients at any time.", SEQUENCE),
        ("Later, each by itself: scalable topics, another metadata store.", GUIDE),
    ):
        if words:
            yield _line(Part.ORDER, "", words, source)


def _paused(facts: UpgradeFacts) -> tuple[str, str]:
    """What to switch off before the brokers, and back on after them; the latter is empty if all is off already."""
    off = [key for key in PAUSED if facts.value(key) == "false"]
    on = [key for key in PAUSED if key not in off]
    are = f"{' and '.join(off)} {'is off already: leave it' if len(off) == 1 else 'are off already: leave them'} so."
    if not on:
        return are, ""
    now = " and ".join(f"{key} ({facts.value(key) or 'not told'} now)" for key in on)
    return f"Set to false at run time: {now}. {are if off else ''}".strip(), f"Set back: {' and '.join(on)}. "


def _brokers(facts: UpgradeFacts) -> str:
    """Brokers in order: that with the shortest absence first, for a trial; the leader last."""
    judged = facts.restarts.verdicts.get(FAILOVER)
    away = facts.restarts.failovers if judged is not None and judged.outlook is not Outlook.UNKNOWN else {}
    leaders = {each.broker for each in facts.brokers if each.leader}
    told = []
    for broker in sorted(
        facts.lines, key=lambda it: (it in leaders, away[it].ended_seconds if it in away else float("inf"), it)
    ):
        words = "its topics are away for a time that is not told"
        if facts.restarts.topics.get(broker) == 0:
            words = "no topic is loaded on it"
        elif broker in away:
            seconds, delayed = away[broker].ended_seconds, away[broker].delayed_messages
            words = f"its topics are away for {seconds_in_words(seconds, rounded=True)}"
            words += f", {counted(delayed, 'delayed message')} read again" if delayed else ""
        told.append(f"{broker} ({'leads, so last; ' if broker in leaders else ''}{words})")
    if len(told) > MAX_NAMES:
        told[MAX_NAMES - 1 : -1] = [f"{len(told) - MAX_NAMES:,} more"]
    return "; ".join(told)


def _line(part: Part, subject: str, words: str, *sources: str, state: State = State.NOTE) -> UpgradeLine:
    return UpgradeLine(part=part, subject=subject, words=words, sources=sources, state=state)
