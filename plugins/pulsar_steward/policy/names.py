"""Names in a policy: of namespaces, topics, subscriptions, brokers and users.

Each kind of name is a type that refuses impossible names: a list without effect must not look effective. In names of
namespaces, topics and subscriptions ``*`` matches any characters, also none. All other characters match themselves,
case-sensitively. Names of brokers and users are exact.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY = "*"
"""Character of a pattern that matches any characters, also none."""

TENANT = r"[-=:.A-Za-z0-9_]+"
"""Regular expression of the names that Pulsar accepts for a tenant, and for a namespace within it."""

_NAMESPACES = re.compile(r"[-=:.A-Za-z0-9_*]+/[-=:.A-Za-z0-9_*]+")
_TOPIC = re.compile(r"(persistent|non-persistent)://([^/]+/[^/]+)/[^/]+")
_PARTITION = re.compile(r".*-partition-[0-9*]+")
_BROKER = re.compile(r"[^\s/,*?]+:[0-9]{1,5}")
_NOT_A_STAR = re.compile(r"[?\[\]{}()|^$\\]")
"""Characters of other pattern languages; a name that contains one of them is written with ``*`` in its place."""


def naming(name: str, names: Iterable[str]) -> str | None:
    """First of these names or patterns that matches a name; None: none does."""
    return next((each for each in names if _pattern(each).fullmatch(name)), None)


def naming_topic(topic: str, names: Iterable[str]) -> str | None:
    """The same for a topic; a partition also matches by the name of its partitioned topic."""
    names = tuple(names)
    return naming(topic, names) or naming(partitioned_topic(topic), names)


def expression(name: str) -> str:
    """Regular expression that a name or pattern stands for, to match the whole text; for Python and for Arrow."""
    return ".*".join(map(re.escape, name.split(ANY)))


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(expression(name), re.DOTALL)


def _legible(text: str) -> str:
    """A text without anything invisible.

    Raises:
        ValueError: If it is empty, contains invisible characters, or begins or ends with a space.
    """
    if not text:
        raise ValueError("is empty: a name is missing, or a comma too much")
    if shown(text) != text:
        raise ValueError(f"'{shown(text)}' holds a character that cannot be seen: write the name without it")
    if text.strip() != text:
        raise ValueError(f"{text!r} begins or ends with a blank, which would be a part of the name: take it out")
    return text


def _namespaces(text: str) -> str:
    _legible(text)
    if not _NAMESPACES.fullmatch(text):
        tenant = text.strip("/")
        remedy = f": for all namespaces of a tenant write {tenant}/*" if re.fullmatch(TENANT, tenant) else ""
        raise ValueError(f"{text!r} is no namespace, `tenant/namespace`, in which * stands for any characters{remedy}")
    return text


def _stars_only(text: str) -> str:
    if found := _NOT_A_STAR.search(text):
        raise ValueError(f"{text!r}: {found[0]} is not understood; only * is, for any characters")
    return text


def _topic(text: str) -> str:
    found = _TOPIC.fullmatch(_legible(text))
    if found is None:
        raise ValueError(
            f"{text!r} is no full name of a topic, such as persistent://tenant/namespace/topic"
            " (persistent://tenant/namespace/* for all topics of a namespace)"
        )
    _namespaces(found[2])
    return text


def _topics(text: str) -> str:
    if _PARTITION.fullmatch(_topic(_stars_only(text))):
        whole = text.rpartition("-partition-")[0]
        raise ValueError(f"{text!r} is a partition: write {whole}, which stands for all of its partitions")
    return text


def _one_topic(text: str) -> str:
    if ANY in _topics(text):
        raise ValueError(f"{text!r}: one topic is meant here, and * is not understood")
    return text


def _broker(text: str) -> str:
    if not _BROKER.fullmatch(_legible(text)):
        raise ValueError(
            f"{text!r} is no broker as clusters list them, host:webport, such as broker-7:8080"
            " (`pulsar-admin brokers list CLUSTER`); there are no patterns of brokers"
        )
    return text


def _user(text: str) -> str:
    if ANY in _legible(text):
        raise ValueError(f"{text!r}: users are named one by one, by Airflow's id; an empty list is everyone")
    return text


_REGEX = re.compile(r"(?:[-\w./:=*+?|()^]|\\[-.dw]|\[\^?[-\w.:]+\]|\{\d{1,3}(?:,\d{0,3})?\})+", re.ASCII)
"""Regular expressions that Java and Python read in the same way."""

_GROUP = re.compile(r"[-=:.A-Za-z0-9_]+")


def _regex(text: str) -> str:
    _legible(text)
    if not _REGEX.fullmatch(text):
        raise ValueError(
            f"{text!r}: only letters, digits, . * + ? | ( ) [ ] {{ }} and \\. \\d \\w are understood, as brokers read"
            " these in the same way"
        )
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


def _group(text: str) -> str:
    if not _GROUP.fullmatch(_legible(text)):
        raise ValueError(f"{text!r} is no name of an isolation policy: letters, digits and - = : . _ are")
    return text


def _cluster(text: str) -> str:
    try:
        return require_cluster_name(text)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


ClusterName = Annotated[str, AfterValidator(_cluster)]
"""A cluster's name in Steward's connections."""

Regex = Annotated[str, AfterValidator(_regex)]
"""A regular expression as an isolation policy has them; it has to match a whole name."""

GroupName = Annotated[str, AfterValidator(_group)]
"""Name of an isolation policy."""

NamespacePattern = Annotated[str, AfterValidator(_namespaces)]
"""Namespaces: ``tenant/namespace``, or a pattern such as ``tenant/*``."""

TopicPattern = Annotated[str, AfterValidator(_topics)]
"""Topics with all of their partitions: a full name, or a pattern such as ``persistent://tenant/*/audit``."""

SubscriptionPattern = Annotated[str, AfterValidator(lambda text: _stars_only(_legible(text)))]
"""Subscriptions on any topic: a name, or a pattern such as ``audit-*``."""

TopicName = Annotated[str, AfterValidator(_one_topic)]
"""One topic by its full name."""

BrokerId = Annotated[str, AfterValidator(_broker)]
"""A broker as the cluster lists it, ``host:webport``."""

UserId = Annotated[str, AfterValidator(_user)]
"""A user of Airflow by id."""
