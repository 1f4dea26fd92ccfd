"""The report in a terminal."""

from __future__ import annotations

import io
import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console

from pulsar_steward.checks.registry import BY_ID, GROUPS
from pulsar_steward.cli.output import print_lines
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import judged_at
from pulsar_steward.report.checkup.fleet import FleetCluster
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.report.checkup.terminal import lines
from pulsar_steward.report.checkup.text import MAX_LISTED, filled_in, plan_lines, wrapped
from pulsar_steward.snapshots.read import open_snapshot
from tests.cases import row_by_row
from tests.unit.report_checkup import examples
from tests.unit.report_checkup.examples import EXAMPLES, LOOKS, looks
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.report.checkup.document import Checkup
    from tests.golden import Golden
    from tests.unit.report_checkup.conftest import Make

    Rows = dict[str, list[dict[str, object]]]

LONG = "persistent://acme/orders/" + "very-long-name-" * 8 + "partition-0"


def shown(checkup: Checkup, width: int = 80, *, verbose: bool = False) -> str:
    """The report as a pipe gets it."""
    return "\n".join(line.plain for line in lines(checkup, width, verbose=verbose))


def part(text: str, title: str) -> str:
    """Lines below a title that begins so, up to the next one."""
    titles = ("Troubles", "What was found", "What to do", "What Steward", "Could not be judged", "Clear (")
    below = text.split(f"\n{title}", 1)[1].lstrip(" ")
    return min((below.split(f"\n{other}", 1)[0] for other in titles), key=len)


def found(subject: str, severity: str = "warning", **fields: str) -> Rows:
    """A finding, and nothing else, of a snapshot."""
    finding = a_finding(severity, "tc-skew", subject=subject, **fields)
    return {"findings": [finding], "verdicts": [a_verdict("tc-skew", "found")]}


def test_a_healthy_cluster_fits_a_screen(checkup_with: Make, golden: Golden) -> None:
    """The report of a healthy cluster has fewer than 25 lines, without empty sections and counts of zero."""
    checks = [a_verdict(each, "clear", f"{each} is as it should be.") for each in BY_ID]
    text = shown(checkup_with(verdicts=checks))
    assert len(text.splitlines()) < 25
    golden(part(text, "What Steward"))
    assert "as it should be" not in text
    told = part(text, "Clear (").splitlines()
    assert told[0] == f"{len(BY_ID)} of {len(BY_ID)})"
    assert [line.split(maxsplit=3) for line in told[1:]] == [
        [str(len(infos)), "of", str(len(infos)), title] for title, infos in GROUPS
    ]


def test_nothing_is_proposed_for_reasons(checkup_with: Make, golden: Golden) -> None:
    """The report explains an empty plan by its warnings and, if verbose, by information and clear checks too."""
    verdicts = [
        a_verdict("ack-holes", "found"),
        a_verdict("hot-bundle", "clear", "No bundle is hot."),
        a_verdict("tc-skew", "found", "Skewed somewhat."),
    ]
    findings = [a_finding("warning", "ack-holes"), a_finding("info", evidence="Skewed somewhat.")]
    checkup = checkup_with(findings=findings, verdicts=verdicts)

    short, whole = (part(shown(checkup, verbose=verbose), "What Steward") for verbose in (False, True))

    assert "\nNothing, for these reasons:\n" in short
    assert short.count("\n- ") == 1
    golden(short)
    further = ("hot-bundle is below its thresholds", "tc-skew is information only")
    assert [words for words in (*short.splitlines(), *further) if words not in whole] == []
    assert [words for words in (*further, "Not judged: ") if words in short] == []
    assert "Not judged: " not in whole


def test_a_check_without_words_hides_no_reason(checkup_with: Make, golden: Golden) -> None:
    """The reasons of an empty plan also list an unknown check whose verdict has no text."""
    verdicts = [a_verdict("ack-holes", "found"), a_verdict("hot-bundle", "unknown", "")]

    text = shown(checkup_with(findings=[a_finding(check_id="ack-holes")], verdicts=verdicts))

    golden(part(text, "What Steward"))


def test_an_old_snapshot_is_said_to_be_old(checkup_with: Make) -> None:
    """In the result itself, and nothing that an old snapshot did not find counts as healthy."""
    ill, well = checkup_with(**skewed()), examples.healthy()
    for checkup, hours, code, told in (
        (ill, 0.4, 1, "RESULT: 1 trouble, 1 finding"),
        (ill, 7.0, 1, "RESULT: STALE, 7.0 h old: 1 trouble, 1 finding"),
        (well, 0.4, 0, "RESULT: healthy"),
        (well, 7.0, 2, "RESULT: STALE, 7.0 h old: it was healthy then, and how it is now is not known"),
    ):
        seen = judged_at(checkup, checkup.about.taken_at + timedelta(hours=hours))
        assert told in shown(seen)
        assert seen.outcome.exit_code == code
        assert (ClusterHealth.HEALTHY is FleetCluster.of("east", None, seen).health) is (code == 0)
    assert "STALE, 7.0 h old" in as_html(seen)


def test_a_trouble_of_several_checks_names_them() -> None:
    """Each of them is listed by itself below, and would else seem to be another trouble."""
    made = examples.troubled()
    joined = msgspec.structs.replace(made.troubles[0], check_ids=("tc-skew", "broker-load-skew"))
    assert "One trouble of tc-skew, broker-load-skew." in shown(msgspec.structs.replace(made, troubles=(joined,)), 300)


def test_information_alone_asks_for_nothing(checkup_with: Make, golden: Golden) -> None:
    """If all findings are information, the advice is one line that refers to `--verbose`."""
    text = shown(checkup_with(**found("s", "info")))

    golden(part(text, "What to do"))


@pytest.mark.parametrize("width", [40, 80, 300])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_longer_than_the_terminal(checkup_with: Make, width: int, *, verbose: bool) -> None:
    """No line is longer than the terminal's width or than 100 characters."""
    text = shown(checkup_with(**skewed()), width, verbose=verbose)

    assert max(len(line) for line in text.splitlines()) <= min(width, 100)


@row_by_row(
    "subject, evidence, told",
    ("east", "All is on one broker.", "- All is on one broker."),
    (LONG, f"The {LONG} lags.", f"- The\n    {LONG}\n    lags."),
    (LONG, "It is behind.", f"- {LONG}:\n    It is behind."),
    (f"{LONG} subscription s", f"Subscription s of {LONG}.", f"- Subscription s of\n    {LONG}."),
    (f"{LONG} subscription a", f"{LONG} lags.", f"- {LONG}\n    subscription a:\n    {LONG}\n    lags."),
    ("a/t subscription b subscription c", "a/t: b.", "- a/t subscription b subscription c: a/t: b."),
    ("acme/mail", "persistent://acme/mail/t holds it.", "- acme/mail: persistent://acme/mail/t holds it."),
    ("acme/mail", "acme/mail.new holds it.", "- acme/mail: acme/mail.new holds it."),
    ("acme/mail", "It is in acme/mail.", "- It is in acme/mail."),
    ("acme/mail", "acme/mail-2 has it.", "- acme/mail: acme/mail-2 has it."),
    ("a+b/c", "a+b/c has it.", "- a+b/c has it."),
    ("b:80", "Not b:8080.", "- b:80: Not b:8080."),
    ("b:80", "Not a-b:80.", "- b:80: Not a-b:80."),
)
def test_a_subject_is_named_once(checkup_with: Make, subject: str, evidence: str, told: str) -> None:
    """A subject stands before the evidence only if that does not name it whole, and long names are not broken."""
    text = shown(checkup_with(**found(subject, evidence=evidence)))

    assert f"  {told}\n" in part(text, "What was found")


@pytest.mark.parametrize(("own", "told"), [("east", "east"), ("local", "east (calls itself local)")])
def test_a_cluster_that_goes_by_its_own_name_is_named_once(checkup_with: Make, own: str, told: str) -> None:
    text = shown(checkup_with(snapshot=meta(pulsar_cluster=own)))

    assert text.startswith(f"Check-up of {told}, Pulsar 4.0.7\n")


@row_by_row(
    "seconds, told",
    (59, "taken 2026-03-01 12:00:00 UTC"),
    (400, "read 2026-03-01 12:00:02 to 12:06:42 UTC"),
    (90_000, "read 2026-03-01 12:00:02 to 2026-03-02 13:00:02 UTC"),
)
def test_reading_that_took_minutes_is_told_with_its_end(checkup_with: Make, seconds: int, told: str) -> None:
    """Terminal, page and JSON say from when to when brokers were read, where that took a minute or more."""
    began = datetime(2026, 3, 1, 12, 0, 2, tzinfo=UTC)
    made = checkup_with(snapshot=meta(read_from=began, read_until=began + timedelta(seconds=seconds)))

    assert told in " ".join(shown(made).split())
    assert told in as_html(made)
    assert (told == made.about.span) is (seconds > 60)


def test_names_cannot_steer_the_terminal(checkup_with: Make) -> None:
    """Escape sequences, line breaks and markup in names and evidence are spelled out in the terminal."""
    finding = a_finding(subject="a\x1b[2Jb", evidence="[red]x[/red]\nRESULT: healthy \u202e")
    checkup = checkup_with(findings=[finding], verdicts=[a_verdict("tc-skew", "found")])
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)

    with console.capture() as capture:
        print_lines(lines(checkup, 80), console)

    text = capture.get()
    assert "a\\x1b[2Jb" in text
    assert "[red]x[/red]\\nRESULT: healthy \\u202e" in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
"""A control sequence that sets the colour of text or of what is behind it."""


def test_no_color_is_respected(checkup_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `NO_COLOR` set the report has no colour, and severities are written as words."""
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False, _environ=os.environ)

    with console.capture() as capture:
        print_lines(lines(checkup_with(**skewed()), 80), console)

    text = capture.get()
    assert COLOUR.search(text) is None
    assert "CRITICAL" in text


def test_a_partial_snapshot_says_so_before_anything_else(checkup_with: Make, golden: Golden) -> None:
    """The report marks a partial snapshot before any finding, and lists at most 20 of the unread namespaces."""
    unread = [f"acme/n{number:02d}" for number in range(23)]

    text = shown(checkup_with(snapshot=meta(unread_namespaces=unread), **skewed()))

    assert text.index("PARTIAL: 23 namespaces ") < text.index("CRITICAL")
    golden(text.partition("CRITICAL")[0])
    assert "acme/n20" not in text


@row_by_row(
    "listed, further, verbose, counts",
    (MAX_LISTED, 0, False, []),
    (MAX_LISTED + 2, 0, False, ["2 more"]),
    (MAX_LISTED + 9, 150, False, ["9 more", "150 more"]),
    (100, 150, True, ["150 more"]),
)
def test_many_findings_are_cut_and_counted(
    checkup_with: Make, listed: int, further: int, counts: list[str], golden: Golden, *, verbose: bool
) -> None:
    """The report lists the first findings and counts the others; if verbose, it lists all that the snapshot has."""
    findings = [a_finding("warning", subject=f"s{number}") for number in range(listed)]
    checkup = checkup_with(findings=findings, verdicts=[a_verdict("tc-skew", "found", more=further)])

    text = shown(checkup, verbose=verbose)

    assert text.count("\n  - s") == (listed if verbose else MAX_LISTED)
    cut = [line.strip() for line in text.splitlines() if ", which" in line or ", not listed" in line]
    assert [" ".join(line.split()[1:3]).rstrip(",") for line in cut] == counts
    golden("\n".join(cut))
    headline = f"RESULT: 1 trouble, {listed + further} findings"
    told = f" ({listed} listed)" if further else ""
    assert f"{headline}{told}\n" in text


def test_what_is_not_listed_is_told_by_severity(checkup_with: Make) -> None:
    """The headline, the tally and the check count all findings by severity, and say how many are listed."""
    verdict = a_verdict("tc-skew", "found", more=2400, critical={"": 400}, warning={"a/b": 1000, "a/c": 990})

    checkup = checkup_with(findings=[a_finding(subject="a"), a_finding("info", subject="b")], verdicts=[verdict])
    text = " ".join(shown(checkup).split())

    assert "RESULT: 1 trouble, 2,391 findings (1 listed) 401 critical, 1,990 warnings, 11 info;" in text
    told = "400 critical, 1,990 warnings, 10 that count as info, like the least bad one listed, at most"
    assert f"and 2,400 more, not listed: {told}" in text


def test_the_check_that_found_more_comes_first(checkup_with: Make) -> None:
    verdicts = [a_verdict("tc-skew", "found"), a_verdict("hot-bundle", "found", more=9)]

    checks = checkup_with(findings=[a_finding(), a_finding(check_id="hot-bundle")], verdicts=verdicts).worst_first()

    assert [check.check_id for check in checks] == ["hot-bundle", "tc-skew"]


def test_a_finding_that_is_less_bad_than_its_check_says_so(checkup_with: Make) -> None:
    findings = [a_finding(subject="worst"), a_finding("warning", subject="other")]

    text = shown(checkup_with(findings=findings, verdicts=[a_verdict("tc-skew", "found")]))

    assert "\nCRITICAL  " in text
    assert "\n  - worst: broker-00:8080" in text
    assert "\n  - WARNING other: broker-00:8080" in text


def test_a_check_that_found_what_nobody_wrote_down_is_there_all_the_same(checkup_with: Make) -> None:
    """A check whose verdict is `found` is shown with its advice even if the snapshot holds no finding of it."""
    text = shown(checkup_with(verdicts=[a_verdict("ack-holes", "found"), a_verdict("hot-bundle", "clear")]))

    assert "\nFOUND     Consumed messages" in text
    assert "\n\nack-holes\n  1. " in text


def test_checks_of_one_reason_stand_together(checkup_with: Make) -> None:
    text = part(shown(checkup_with(), verbose=True), "Could not be judged")

    assert text.count("diagnosed without this check") == 1


def test_a_plan_shows_each_step_with_its_call(tmp_path: Path, golden: Golden) -> None:
    snapshot = open_snapshot(written(tmp_path / "snapshot", **skewed()))
    plan = make_plan(planning_facts_of(snapshot, Policy(), Moves()))
    text = "\n".join(line.plain for line in plan_lines(plan, ["because"], 80))
    golden(text.replace(plan.plan_id, "PLAN").replace(plan.digest, "DIGEST"))


def test_a_paragraph_keeps_its_indentation() -> None:
    """A wrapped paragraph is indented below its first prefix, and an empty one is the prefix alone."""
    assert [line.plain for line in wrapped("one two three", 10, first="1. ", indent=3)] == ["1. one two", "   three"]
    assert [line.plain for line in wrapped("", 10, first="- ", indent=2)] == ["- "]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_how_a_checkup_looks(name: str, look: str, golden: Golden) -> None:
    """The report of each example equals its golden text, including its colours."""
    golden(looks(name, look))


@row_by_row(
    "subject, filled",
    ("persistent://shop/orders/t subscription app", "`topics skip persistent://shop/orders/t -s app`, shop/orders"),
    ("persistent://shop/orders/t", "`topics skip persistent://shop/orders/t -s SUB`, shop/orders"),
    ("persistent://shop/orders/$(id)", "`topics skip 'persistent://shop/orders/$(id)' -s SUB`, shop/orders"),
    ("persistent://shop/orders/t subscription -f", "`topics skip TOPIC -s SUB`, NS"),
    ("persistent://shop/orders/t subscription main subscription x", "`topics skip TOPIC -s SUB`, NS"),
    ("persistent://shop/orders/t`x`", "`topics skip TOPIC -s SUB`, shop/orders"),
    ("shop/orders to west", "`topics skip TOPIC -s SUB`, NS"),
    ("shop/orders/0x00000000_0x40000000", "`topics skip TOPIC -s SUB`, shop/orders"),
    ("http://broker-1:8080", "`topics skip TOPIC -s SUB`, NS"),
)
def test_only_names_that_cannot_be_read_otherwise_are_filled_into_commands(subject: str, filled: str) -> None:
    """A command that names another topic than was meant would be carried out by whoever copies it."""
    assert filled_in("`topics skip TOPIC -s SUB`, NS", subject) == filled
