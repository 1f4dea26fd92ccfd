"""Reading of logs: each file once, counts of the messages looked for, and findings with an example line each."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.logs.entries import UNREADABLE, Entry, entry_of, lines_of
from pulsar_steward.logs.patterns import CLIENTS, DEBUG, FILES, LOG_CHECKS, OTHERS
from pulsar_steward.logs.thread_dumps import ThreadDumps
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.model.units import counted, number_in_words
from pulsar_steward.pulsar.faults import Unusable
from pulsar_steward.pulsar.mask import looks_random, mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pulsar_steward.logs.patterns import LogCheck, Pattern

KEY = TypeVar("KEY")

MAX_EXAMPLE = 300
"""Maximum length of an example line, in characters."""

_MAX_LOOKED_AT = 2000
_MAX_KINDS = 1000
_MAX_TOLD_KINDS = 3
_BEHIND = 3
_MINUTE = len("2026-01-31T23:59")
_CLOCK_MINUTE = len("23:59")

MOST_PER_MINUTE = 60
"""Number of connections or subscriptions of one host in a minute from which that minute counts."""

MINUTES = 3
"""Number of such minutes that make a finding: a deployment ends sooner."""

MAX_HOSTS = 10_000
"""Maximum number of hosts (with topic and subscription) that are counted in one minute."""

DEBUG_PERCENT = 10
"""Share of DEBUG and TRACE entries, in percent, from which a process counts as logging at DEBUG."""

DEBUG_ENTRIES = 1000
"""Minimum number of these entries: a verbose run of a command-line tool has fewer."""

_HOST = r"[0-9a-fA-F.:]{2,45}?"
_CONNECTED = re.compile(
    rf"^New connection from \[?(?:id: 0x[0-9a-f]+, L:\S+ - R:)?/(?P<host>{_HOST}):\d+"
    rf"|^\[\[?(?:id: 0x[0-9a-f]+, L:\S+ - R:)?/(?P<also>{_HOST}):\d+.{{0,100}}\] connected with (?:role|clientVersion)="
)
_SUBSCRIBED = re.compile(
    rf"^\[\[?(?:id: 0x[0-9a-f]+, L:\S+ - R:)?/(?P<host>{_HOST}):\d+.{{0,100}}\] Subscribing on topic"
    r" (?P<topic>\S{1,500}) / (?P<subscription>\S{1,300})"
)
_HOST_APART = re.compile(r"(?:New connection|connected|Subscribing on topic)(?: \{|$)")
"""Messages of `ServerCnx` from Pulsar 5 on (PIP-467): the host and the topic are attributes beside them."""
_VARIES = re.compile(r"\[[^\]]{0,300}\]|\S{0,100}\d\S{0,100}")


_BY_LOGGER: defaultdict[str, list[tuple[Pattern, re.Pattern[str]]]] = defaultdict(list)
for _pattern in (each for check in LOG_CHECKS.values() for each in check.patterns):
    for _logger in _pattern.loggers.split() or [""]:
        _BY_LOGGER[_logger].append((_pattern, re.compile(_pattern.message)))


class LogsRead(msgspec.Struct, frozen=True):
    """Result of reading logs.

    Attributes:
        findings: Findings of `LOG_CHECKS`; the subject of each is a file.
        verdicts: Verdict of each check.
    """

    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]


class _Matches(msgspec.Struct):
    """Messages of one pattern in one file."""

    example: str
    first: str
    last: str
    times: int = 0
    longest: float = 0.0


class _Clients(msgspec.Struct):
    """Clients of one host that keep coming anew: the minutes with too many, and the maximum of one minute."""

    minutes: int = 0
    most: int = 0


class _File:
    """Counts of one file.

    Args:
        name: Its name as given.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = self.entries = self.debug = 0
        self.failure = ""
        self.matches: dict[Pattern, _Matches] = {}
        self.others: dict[str, _Matches] = {}
        self.clients: dict[str, _Clients] = {}
        self.hosts_apart = False
        self._entry: Entry | None = None
        self._behind = 0
        self._minute = ""
        self._in_minute: defaultdict[str, int] = defaultdict(int)

    def read(self, lines: Iterable[str], dumps: ThreadDumps) -> None:
        """Reads the file; `failure` is the error if it cannot be read to its end."""
        dumps.begin(self.name)
        before = dumps.dumps
        try:
            for line in lines:
                self.lines += 1
                if not dumps.takes(line):
                    self._take(line)
        except UNREADABLE as error:
            self.failure = f"it could not be read to its end: {getattr(error, 'strerror', None) or error}"
        self._end_minute()
        if not (self.failure or self.entries or dumps.dumps > before):
            self.failure = "no line is in a format that is known" if self.lines else "it is empty"

    def _take(self, line: str) -> None:
        if entry := entry_of(line):
            self.entries += 1
            self.debug += entry.level in {"DEBUG", "TRACE"}
            self._entry, self._behind = entry, 0
            self._count(entry, line)
            self._count_client(entry)
        elif self._entry is not None and self._behind < _BEHIND:
            self._behind += 1  # the next line has the error of an entry, and later lines its cause
            self._count(Entry(self._entry.at, "", self._entry.logger, line.strip()), line)
        elif line.startswith(("Caused by: java.lang.OutOfMemoryError", "java.lang.OutOfMemoryError")):
            self._count(Entry("", "", "", line), line)

    def _count(self, entry: Entry, line: str) -> None:
        known = False
        for pattern, message in (*_BY_LOGGER.get(entry.logger, ()), *_BY_LOGGER[""]):
            if found := message.search(entry.message):
                known = True
                took = found.groupdict().get("took")
                _add(self.matches, pattern, entry, line, float(took) * pattern.seconds if took else 0.0)
        if not known and entry.level in {"ERROR", "FATAL"}:
            kind = f"{entry.logger}: {_VARIES.sub('#', entry.message[:120])}"
            if kind in self.others or len(self.others) < _MAX_KINDS:
                _add(self.others, kind, entry, line)

    def _count_client(self, entry: Entry) -> None:
        if entry.logger != "ServerCnx":
            return
        if found := _SUBSCRIBED.match(entry.message):
            who = f"{found['host']} subscribed to {found['topic']} / {found['subscription']}"
        elif found := _CONNECTED.match(entry.message):
            who = f"{found['host'] or found['also']} connected"
        else:
            self.hosts_apart |= _HOST_APART.match(entry.message) is not None
            return
        minute = entry.at[: _MINUTE if entry.at[4:5] == "-" else _CLOCK_MINUTE]
        if minute != self._minute:
            self._end_minute()
            self._minute = minute
        if who in self._in_minute or len(self._in_minute) < MAX_HOSTS:
            self._in_minute[who] += 1

    def _end_minute(self) -> None:
        for who, times in self._in_minute.items():
            if times >= MOST_PER_MINUTE and (who in self.clients or len(self.clients) < MAX_HOSTS):
                seen = self.clients.setdefault(who, _Clients())
                seen.minutes += 1
                seen.most = max(seen.most, times)
        self._in_minute.clear()


def read_logs(paths: Sequence[Path], secrets: Iterable[str] = (), say: Callable[[str], object] = str) -> LogsRead:
    """Reads files, each once, and reports their findings.

    A file that is unreadable or in an unknown format is named in a finding, and then no check is clear.

    Args:
        paths: The files; they must exist (`pulsar_steward.logs.entries.require_file`).
        secrets: Known secrets, masked in example lines together with text that looks like a secret.
        say: Called with the name of each file when its reading begins.
    """
    dumps, files = ThreadDumps(), [_File(name) for name in dict.fromkeys(map(str, paths))]
    for file, path in zip(files, dict.fromkeys(paths), strict=True):
        say(f"reading {file.name}")
        file.read(lines_of(path), dumps)
    findings = [*dumps.findings(), *(each for file in files for each in _findings(file, hider_of(secrets)))]
    findings.sort(key=lambda finding: (-finding.severity.rank, -finding.figures.get("times", 0), finding.subject))
    of_checks = {check_id: [each for each in findings if each.check_id == check_id] for check_id in LOG_CHECKS}
    return LogsRead(
        findings=tuple(each for found in of_checks.values() for each in found[:MAX_FINDINGS]),
        verdicts=tuple(_verdict(check, of_checks[check.check_id], files, dumps) for check in LOG_CHECKS.values()),
    )


def _verdict(check: LogCheck, found: Sequence[Finding], files: Sequence[_File], dumps: ThreadDumps) -> Verdict:
    entries = sum(file.entries for file in files)
    failed = [file.name for file in files if file.failure]
    apart = next((file.name for file in files if file.hosts_apart), None)
    looked_at = f"{counted(len(files), 'file')}, {counted(sum(file.lines for file in files), 'line')}"
    if found:
        more = max(0, len(found) - MAX_FINDINGS)
        return Verdict(check_id=check.check_id, outlook=Outlook.FOUND, reason=found[0].evidence, more=more)
    if check.of_dumps and not dumps.dumps:
        unknown = "No thread dump is among the files."
    elif not check.of_dumps and check is not FILES and not entries:
        unknown = "No log is among the files."
    elif check is CLIENTS and apart:
        unknown = (
            f"Which hosts connect or subscribe is not in the messages of {apart}, as of Pulsar 5, but beside them."
        )
    elif failed:
        unknown = f"Nothing of it was seen in {looked_at}; but not all of {failed[0]} could be read."
    else:
        quiet = f"Nothing of it is in {looked_at}, {counted(dumps.dumps, 'thread dump')} among them."
        return Verdict(check_id=check.check_id, outlook=Outlook.CLEAR, reason=quiet)
    return Verdict(check_id=check.check_id, outlook=Outlook.UNKNOWN, reason=unknown)


def _add(matches: dict[KEY, _Matches], key: KEY, entry: Entry, line: str, took: float = 0.0) -> None:
    seen = matches.get(key)
    if seen is None:
        seen = matches[key] = _Matches(line[:_MAX_LOOKED_AT], entry.at, entry.at)
    seen.times += 1
    seen.last = entry.at or seen.last
    seen.longest = max(seen.longest, took)


def _findings(file: _File, hide: Callable[[str], str]) -> Iterator[Finding]:
    for check in LOG_CHECKS.values():
        for pattern in check.patterns:
            if seen := file.matches.get(pattern):
                severity = pattern.severity if seen.times >= pattern.least else Severity.INFO
                yield _of_matches(check, severity, pattern.words, file, seen, hide)
    most = sorted(file.others.items(), key=lambda item: (-item[1].times, item[0]))
    for _, seen in most[:_MAX_TOLD_KINDS]:
        yield _of_matches(OTHERS, Severity.INFO, "errors of one kind", file, seen, hide)
    often = ((who, seen) for who, seen in file.clients.items() if seen.minutes >= MINUTES)
    for who, clients in sorted(often, key=lambda item: (-item[1].most, item[0])):
        evidence = (
            f"Clients of {who} up to {counted(clients.most, 'time')} a minute, in {counted(clients.minutes, 'minute')}"
            f" of {file.name} at least {MOST_PER_MINUTE} times."
        )
        figures = {"times": clients.most, "minutes": clients.minutes}
        yield CLIENTS.finding(Severity.WARNING, file.name, evidence, figures)
    if file.debug >= DEBUG_ENTRIES and file.debug * 100 >= file.entries * DEBUG_PERCENT:
        evidence = (
            f"{file.debug:,} of {counted(file.entries, 'entry', 'entries')} in {file.name} are at DEBUG or TRACE."
        )
        yield DEBUG.finding(Severity.WARNING, file.name, evidence, {"times": file.debug, "entries": file.entries})
    if file.failure:
        evidence = f"{file.name}: {file.failure}, after {counted(file.lines, 'line')}."
        yield FILES.finding(Severity.INFO, file.name, evidence, {"lines": file.lines})


def _of_matches(
    check: LogCheck, severity: Severity, words: str, file: _File, seen: _Matches, hide: Callable[[str], str]
) -> Finding:
    moments = f"at {seen.first}" if seen.first == seen.last else f"from {seen.first} to {seen.last}"
    when = f", {moments}" if seen.first else ""
    figures = {"times": seen.times}
    longest = ""
    if seen.longest:
        longest = f"; the longest took {number_in_words(seen.longest)} s"
        figures["longest_milliseconds"] = round(seen.longest * 1000)
    example = hide(seen.example)
    if len(example) > MAX_EXAMPLE:
        example = f"{example[:MAX_EXAMPLE]} …"
    evidence = f"{words}: {counted(seen.times, 'time')} in {file.name}{when}{longest}. For example: {example}"
    return check.finding(severity, file.name, evidence[:1].upper() + evidence[1:], figures)


HIDDEN = "***"

_WORDS = r"passw(?:or)?d|secret|token|credential|authorization|api_?-?key|private_?-?key|auth\w{0,40}params?"
_NAME = rf"[\w.-]{{0,40}}(?:{_WORDS})[\w.-]{{0,40}}"
_NAMED = re.compile(
    rf"(?P<name>(?i:{_NAME})\\?[\"']?\s*[=:]\s*\\?[\"']?)(?:(?i:bearer|basic|token|digest)[\s:]+)?[^\s,;\"'\\)}}\]]+"
)
_BEARER = re.compile(r"(?P<name>\b(?i:bearer|basic)\s+)[^\s,;\"']{8,}")
_OF_URL = re.compile(r"(?P<name>://[^/\s:@]{0,200}:)[^/\s@]{1,200}(?=@)")
_WEB_TOKEN = re.compile(r"(?P<name>)\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}")
_KEY = re.compile(r"(?P<name>-----BEGIN [A-Z ]*PRIVATE KEY-----).*")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{24,}")


def hider_of(secrets: Iterable[str]) -> Callable[[str], str]:
    """Function that masks secrets in a line.

    Args:
        secrets: Known secrets, such as the token of the cluster's admin API.
    """
    mask = mask_of(*secrets)

    def hide(line: str) -> str:
        try:
            line = mask.text(line)
        except Unusable:
            return HIDDEN
        for pattern in (_KEY, _OF_URL, _NAMED, _BEARER, _WEB_TOKEN):
            line = pattern.sub(rf"\g<name>{HIDDEN}", line)
        return _RUN.sub(lambda run: HIDDEN if looks_random(run[0]) else run[0], line)

    return hide
