"""Pulsar's versions: the operations that steps need, the release that introduced them, and the releases tried.

`TRIED` is the table of docs/versions.md. `python -m benchmarks.versions` writes it after trying all operations on real
brokers of each release; a test compares the two. Operations never tried are refused (`guard.version_tried`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.units import named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

VERSION = re.compile(r"[!-~]{1,100}")
"""Pattern for a response that is accepted as a version."""

POLICY_KEY = "guards.versions_tried_here"

Numbers = tuple[int, int, int]

_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})\.\d{1,4}", re.ASCII)
_BEGINNING = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)(?:\.(\d{1,4})(?!\d))?", re.ASCII)


class Operation(StrEnum):
    """An operation of brokers that a step needs: a row of docs/versions.md."""

    MOVE_BUNDLE = "move a bundle to a broker"
    MOVE_COORDINATORS = "move transaction coordinators to a broker"
    SPLIT_BUNDLE = "split a bundle by topic count"
    RAISE_COORDINATORS = "raise the number of transaction coordinators"
    ADD_PARTITIONS = "raise the number of a topic's partitions"
    NAMESPACE_SIZE_QUOTA = "size quota of a namespace"
    NAMESPACE_AGE_QUOTA = "age quota of a namespace"
    NAMESPACE_RETENTION = "retention of a namespace"
    NAMESPACE_TTL = "time to live of a namespace"
    NAMESPACE_DELAYED_DELIVERY = "longest delay of a namespace"
    NAMESPACE_PERSISTENCE = "persistence of a namespace"
    TOPIC_SIZE_QUOTA = "size quota of a topic"
    TOPIC_AGE_QUOTA = "age quota of a topic"
    TOPIC_RETENTION = "retention of a topic"
    TOPIC_TTL = "time to live of a topic"
    TOPIC_DELAYED_DELIVERY = "longest delay of a topic"
    TOPIC_PERSISTENCE = "persistence of a topic"
    DELETE_SUBSCRIPTION = "delete a subscription"
    SET_ISOLATION = "set an isolation policy without an unload"


OF_NAMESPACES: Mapping[SettingName, Operation] = {
    SettingName.SIZE_QUOTA: Operation.NAMESPACE_SIZE_QUOTA,
    SettingName.AGE_QUOTA: Operation.NAMESPACE_AGE_QUOTA,
    SettingName.RETENTION: Operation.NAMESPACE_RETENTION,
    SettingName.TTL: Operation.NAMESPACE_TTL,
    SettingName.DELAYED_DELIVERY: Operation.NAMESPACE_DELAYED_DELIVERY,
    SettingName.PERSISTENCE: Operation.NAMESPACE_PERSISTENCE,
}
OF_TOPICS: Mapping[SettingName, Operation] = {
    SettingName.SIZE_QUOTA: Operation.TOPIC_SIZE_QUOTA,
    SettingName.AGE_QUOTA: Operation.TOPIC_AGE_QUOTA,
    SettingName.RETENTION: Operation.TOPIC_RETENTION,
    SettingName.TTL: Operation.TOPIC_TTL,
    SettingName.DELAYED_DELIVERY: Operation.TOPIC_DELAYED_DELIVERY,
    SettingName.PERSISTENCE: Operation.TOPIC_PERSISTENCE,
}


class Introduced(msgspec.Struct, frozen=True, kw_only=True):
    """The releases that introduced an operation to brokers.

    Attributes:
        releases: The first release of each line that got it, rising; every line after the last one has it.
        what: Feature that earlier brokers lack.
        source: Pulsar's own proposal or change, and the evidence in the brokers' classes of the releases tried here.
    """

    releases: tuple[tuple[int, int, int], ...]
    what: str
    source: str

    @property
    def since(self) -> str:
        """The releases as text: ``3.0.7, 3.3.2, 4.0``."""
        return named([f"{major}.{minor}{f'.{patch}' if patch else ''}" for major, minor, patch in self.releases])

    def is_in(self, major: int, minor: int, patch: int) -> bool:
        """True if brokers of this release have it."""
        of_line = [first for first in self.releases if first[:2] == (major, minor)]
        return (major, minor, patch) >= of_line[0] if of_line else (major, minor) > self.releases[-1][:2]


_DESTINATION = Introduced(
    releases=((3, 0, 0),), what="`destinationBroker` at an unload, and would ignore it", source="apache/pulsar#18663"
)
_LONGEST_DELAY = Introduced(
    releases=((3, 3, 0),),
    what="`maxDeliveryDelayInMillis` in its delayed delivery, and would take any delay all the same",
    source="PIP-315, apache/pulsar#21798",
)
INTRODUCED: Mapping[Operation, Introduced] = {
    Operation.MOVE_BUNDLE: _DESTINATION,
    Operation.MOVE_COORDINATORS: _DESTINATION,
    Operation.SPLIT_BUNDLE: Introduced(
        releases=((2, 11, 0),),
        what="`topicHashPositions`, by which the halves of a split are foretold",
        source="PIP-143, apache/pulsar#13796",
    ),
    Operation.RAISE_COORDINATORS: Introduced(
        releases=((2, 11, 0),),
        what="`transactionCoordinator/replicas`, by which the number of coordinators is raised",
        source="apache/pulsar#15296",
    ),
    Operation.NAMESPACE_DELAYED_DELIVERY: _LONGEST_DELAY,
    Operation.TOPIC_DELAYED_DELIVERY: _LONGEST_DELAY,
    Operation.SET_ISOLATION: Introduced(
        releases=((3, 0, 7), (3, 3, 2), (4, 0, 0)),
        what=(
            "`unload_scope` of an isolation policy, and may unload all its namespaces at once (upgrade the brokers, or"
            " set the policy by hand when that does no harm)"
        ),
        source="PIP-369, apache/pulsar#23116, #23120",
    ),
}
"""Operations missing in brokers of a release tried here, or of a release shortly before."""

MIGRATES_CLUSTERS = Introduced(
    releases=((3, 0, 0),), what="migration of a cluster", source="PIP-188, apache/pulsar#17962"
)
MIGRATES_NAMESPACES = Introduced(
    releases=((3, 2, 0),),
    what="migration of a namespace",
    source="apache/pulsar#21367; of the releases tried here 3.3.2 has it, and 3.0.7 has not",
)
MIGRATION_SPARES_ITS_OWN = Introduced(
    releases=((3, 3, 4), (4, 0, 2)),
    what="an exception for Pulsar's own topics, which a migration would terminate as well",
    source="apache/pulsar#23767",
)
"""Pulsar's own migration of clients to another cluster: Steward uses none of it, and says which brokers have it."""

EVERY = frozenset(Operation)
_DELAYED_DELIVERY = frozenset({Operation.NAMESPACE_DELAYED_DELIVERY, Operation.TOPIC_DELAYED_DELIVERY})
TRIED: Mapping[str, frozenset[Operation]] = {
    "2.10.4": EVERY - INTRODUCED.keys(),
    "3.0.7": EVERY - _DELAYED_DELIVERY,
    "3.3.2": EVERY,
    "4.0.7": EVERY,
    "4.2.4": EVERY,
    "5.0.1": EVERY,
}
"""Operations that worked on real brokers, by release; another patch release of the same line counts as the same.

Tried by `python -m benchmarks.versions`, on the date in docs/versions.md.
"""

_BY_LINE = {release.rpartition(".")[0]: release for release in TRIED}


def numbers_of(version: str) -> Numbers:
    """Numbers of a line or a release, such as ``4.0`` or ``2.6.2``, for comparison; what it leaves out is 0."""
    major, minor, patch = map(int, (*version.split("."), "0")[:3])
    return major, minor, patch


def release_of(version: str) -> Numbers | None:
    """Numbers of a version as a broker reports it; None: they cannot be read."""
    found = _RELEASE.match(version)
    return numbers_of(found[0]) if found else None


def line_of(version: str) -> str | None:
    """Line of releases (``4.0``) of a version as a broker reports it; None: it cannot be read."""
    found = _BEGINNING.match(version)
    return f"{found[1]}.{found[2]}" if found else None


def may_have_scalable_topics(version: str) -> bool:
    """True if brokers of a version have scalable topics (PIP-460); one whose numbers cannot be read may be any."""
    release = release_of(version)
    return release is None or release >= (5, 0, 0)


def tried_release(version: str) -> str | None:
    """The tried release of a version's minor line; None: none, or not a release of Apache's (``4.0.7-acme``)."""
    release = _RELEASE.fullmatch(version)
    return _BY_LINE.get(f"{release[1]}.{release[2]}") if release else None


def objection_to(operation: Operation, version: str, tried_here: Collection[str] = ()) -> str | None:
    """Reason why an operation is not run on brokers of a version; None: it was tried there.

    Args:
        operation: The operation.
        version: Version as a broker reports it.
        tried_here: Versions that the operator vouches for: lines (``4.3``), or versions as brokers report them.
    """
    begins, introduced = _BEGINNING.match(version), INTRODUCED.get(operation)
    if introduced and begins and not introduced.is_in(*(int(each or 0) for each in begins.groups())):
        return f"Pulsar {version} has no {introduced.what}: that came with {introduced.since} ({introduced.source})"
    tried = tried_release(version)
    if (tried and operation in TRIED[tried]) or is_vouched_for(version, tried_here):
        return None
    if tried:
        return f"{operation}: it was never tried on Pulsar {tried} (docs/versions.md; policy key {POLICY_KEY})"
    return never_tried(version)


def is_vouched_for(version: str, tried_here: Collection[str]) -> bool:
    """True if the operator named this version, or its minor line."""
    release = _RELEASE.fullmatch(version)
    return version in tried_here or (release is not None and f"{release[1]}.{release[2]}" in tried_here)


def tried_as(version: str) -> str:
    """An accepted version, with the tried release of its line, or with the policy key that vouches for it."""
    tried = tried_release(version)
    if tried is None:
        return f"Pulsar {version}, as the policy says (policy key {POLICY_KEY})"
    return f"Pulsar {version}" if version == tried else f"Pulsar {tried}, of the same line as {version}"


def never_tried(version: str) -> str:
    """Objection to a version without any trial, with the policy key that lifts it."""
    newest, why = max(TRIED, key=numbers_of), ""
    if not _RELEASE.fullmatch(version):
        why = ": it is no release of Apache Pulsar"
    elif numbers_of(version) > numbers_of(newest):
        why = f": it is newer than {newest}, the newest that was"
    return f"Pulsar {version} was never tried{why} (docs/versions.md; policy key {POLICY_KEY})"


# Java since 2.11 writes ``Pulsar-Java-v4.0.7``; C++ and libraries based on it ``Pulsar-CPP-v3.5.0``; Go since 0.16
# ``Pulsar-Go-v0.19.0``. Earlier Java and C++ clients wrote the bare number. Brokers drop a version that contains a
# space, such as the ``Pulsar Go 0.1`` of Go clients before 0.16: these have no version.


NONE = ""
"""Version of a client without a version at the brokers."""

_VERSION = re.compile(
    r"(?:Pulsar-(?P<language>[A-Za-z+#.]{1,20})-v)?(?P<numbers>\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)\b", re.ASCII
)


class KnownTrouble(NamedTuple):
    """A bug of some versions of a client library.

    Attributes:
        language: Language as the library writes it; empty: Java and C++ before they wrote one.
        since: Numbers of the first version with the bug.
        cured: Numbers of the first version without the bug.
        severity: Severity of the bug.
        words: Behaviour of such clients, as the rest of a sentence.
        source: Source of this knowledge.
    """

    language: str
    since: Numbers
    cured: Numbers
    severity: Severity
    words: str
    source: str


_DROP_UNSENT = (
    ("2.10.5", "2.11.0"),
    ("2.11.2", "2.11.5"),
    ("3.0.0", "3.0.6"),
    ("3.1.0", "3.2.4"),
    ("3.3.0", "3.3.1"),
)
"""Releases, from and before, that drop what was not sent when they load a topic that a policy of its own replicates.

Introduced by apache/pulsar#19972; the fix, apache/pulsar#22890, names 2.11.5, 3.0.6 and 3.3.1, and
3.2.4 is of the days of 3.0.6.
"""


def drops_unsent(version: str) -> bool:
    """True if brokers of a version drop, or may drop, replication's cursors of a topic when they load it.

    Only cursors to clusters that the topic's own policy names, and its namespace's does not (`_DROP_UNSENT`). A version
    whose numbers cannot be read may be any.
    """
    release = release_of(version)
    return release is None or any(numbers_of(first) <= release < numbers_of(fixed) for first, fixed in _DROP_UNSENT)


def who_drops_unsent(version: str) -> str:
    """The subject of a sentence on a version that `drops_unsent`; it says so where that is not certain."""
    return f"Pulsar {version}" if _RELEASE.match(version) else f"Pulsar {version} perhaps"


TROUBLES = (
    KnownTrouble(
        "",
        numbers_of("2.6.2"),
        numbers_of("2.6.3"),
        Severity.WARNING,
        "Java 2.6.2 makes its consumers anew without end after partitions were added",
        "docs/knowledge.md C",
    ),
    KnownTrouble(
        "",
        numbers_of("2.7.2"),
        numbers_of("2.7.3"),
        Severity.WARNING,
        "consumers of Java 2.7.2 break where a topic's partitions cannot be seen for a moment",
        "apache/pulsar#10717",
    ),
    KnownTrouble(
        "Go",
        (0, 0, 0),
        numbers_of("0.18.0"),
        Severity.WARNING,
        "Go clients before 0.18.0 close their producers where looking for new partitions fails",
        "apache/pulsar-client-go#1437",
    ),
    KnownTrouble(
        "Go",
        numbers_of("0.18.0"),
        numbers_of("0.20.0"),
        Severity.INFO,
        "consumers of Go clients before 0.20.0 may stand still when partitions are added",
        "apache/pulsar-client-go#1500",
    ),
    KnownTrouble(
        "",
        (0, 0, 0),
        numbers_of("2.8.0"),
        Severity.INFO,
        "they are from before June 2021",
        "docs/knowledge.md C",
    ),
)
"""Known bugs; if a version has several, the first counts."""

UNKNOWN = (
    "which is so of Go clients before 0.16.0; those before 0.11.0 drop connections needlessly and may reconnect for"
    " ever (apache/pulsar-client-go#650, #1027)"
)
"""Known bugs of clients without a version at the brokers."""


def trouble_of(version: str) -> KnownTrouble | None:
    """The known bug of a version as a broker reports it; None: there is none."""
    found = _VERSION.match(version)
    if found is None:
        return None
    language, numbers = found["language"] or "", numbers_of(found["numbers"])
    return next((each for each in TROUBLES if each.language == language and each.since <= numbers < each.cured), None)


def is_suspicious(version: str) -> bool:
    """True if clients of a version should be named: it has a known bug, or brokers know no version."""
    return version == NONE or trouble_of(version) is not None
