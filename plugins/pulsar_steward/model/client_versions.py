"""Client versions with known bugs: the bug, the version that cured it, and the notation of each library.

Java since 2.11 writes ``Pulsar-Java-v4.0.7``; C++ and libraries based on it ``Pulsar-CPP-v3.5.0``; Go since 0.16
``Pulsar-Go-v0.19.0``. Earlier Java and C++ clients wrote the bare number. Brokers drop a version that contains a space,
such as the ``Pulsar Go 0.1`` of Go clients before 0.16: these have no version.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pulsar_steward.model.finding import Severity

NONE = ""
"""Version of a client without a version at the brokers."""

_THOUSAND = 1000
_VERSION = re.compile(
    r"(?:Pulsar-(?P<language>[A-Za-z+#.]{1,20})-v)?(?P<numbers>\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)\b", re.ASCII
)


class KnownTrouble(NamedTuple):
    """A bug of some versions of a client library.

    Attributes:
        language: Language as the library writes it; empty: Java and C++ before they wrote one.
        since: Number of the first version with the bug.
        cured: Number of the first version without the bug.
        severity: Severity of the bug.
        words: Behaviour of such clients, as the rest of a sentence.
        source: Source of this knowledge.
    """

    language: str
    since: int
    cured: int
    severity: Severity
    words: str
    source: str


def number_of(version: str) -> int:
    """A version such as ``2.6.2`` as a number for comparison."""
    major, minor, patch = (*version.split("."), "0")[:3]
    return (int(major) * _THOUSAND + int(minor)) * _THOUSAND + int(patch)


TROUBLES = (
    KnownTrouble(
        "",
        number_of("2.6.2"),
        number_of("2.6.3"),
        Severity.WARNING,
        "Java 2.6.2 makes its consumers anew without end after partitions were added",
        "docs/knowledge.md C",
    ),
    KnownTrouble(
        "",
        number_of("2.7.2"),
        number_of("2.7.3"),
        Severity.WARNING,
        "consumers of Java 2.7.2 break where a topic's partitions cannot be seen for a moment",
        "apache/pulsar#10717",
    ),
    KnownTrouble(
        "Go",
        0,
        number_of("0.18.0"),
        Severity.WARNING,
        "Go clients before 0.18.0 close their producers where looking for new partitions fails",
        "apache/pulsar-client-go#1437",
    ),
    KnownTrouble(
        "Go",
        number_of("0.18.0"),
        number_of("0.20.0"),
        Severity.INFO,
        "consumers of Go clients before 0.20.0 may stand still when partitions are added",
        "apache/pulsar-client-go#1500",
    ),
    KnownTrouble("", 0, number_of("2.8.0"), Severity.INFO, "they are from before June 2021", "docs/knowledge.md C"),
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
    language, number = found["language"] or "", number_of(found["numbers"])
    return next((each for each in TROUBLES if each.language == language and each.since <= number < each.cured), None)


def is_suspicious(version: str) -> bool:
    """True if clients of a version should be named: it has a known bug, or brokers know no version."""
    return version == NONE or trouble_of(version) is not None
