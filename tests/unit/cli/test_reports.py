"""Commands that report on a snapshot, and explain a check."""

from __future__ import annotations

import json
import re
import resource
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.cli import explain
from pulsar_steward.model.plan import Plan
from pulsar_steward.report.checkup.schema import schema
from pulsar_steward.runtime.installed_files import project_files
from tests.builders import CLUSTER, NOW
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended, Steward


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Piled-up coordinators."""
    return written(tmp_path / "snapshot", **skewed())


@cases(
    "changed, code, words",
    ("healthy", {}, 0, "RESULT: healthy"),
    ("findings", skewed(), 1, "RESULT: 1 trouble, 1 finding"),
    ("info", {"findings": [a_finding("info")], "verdicts": [a_verdict("bundle-topic-skew", "clear")]}, 0, "1 info"),
    ("unknown", {"verdicts": [a_verdict("tc-skew", "unknown")]}, 2, "RESULT: could not look"),
    ("partial", {"snapshot": meta(unread_brokers=["broker-02:8080"]), **skewed()}, 1, "PARTIAL: 1 of"),
    ("stale", {"snapshot": meta()}, 2, "old: it was healthy then, and how it is now is not known"),
)
def test_a_checkup_ends_with_what_it_comes_to(
    steward: Steward, tmp_path: Path, changed: dict[str, list[dict[str, object]]], code: int, words: str
) -> None:
    """The exit code follows from what the check-up found, and only the report is printed."""
    new = {"snapshot": meta(taken_at=datetime.now(UTC))}
    ended = steward("checkup", "--snapshot", written(tmp_path / "s", **new | changed))

    assert (ended.code, ended.err) == (code, "")
    assert words in " ".join(ended.out.split())


@row_by_row(
    "before, code",
    ([skewed()], 1),
    ([skewed(), {"verdicts": [a_verdict("tc-skew", "unknown")]}], 1),
    ([skewed(), {}], 0),
    ([{"findings": [a_finding("info")], "verdicts": [a_verdict("tc-skew", "found")]}], 0),
    ([], 0),
)
def test_what_was_found_before_and_cannot_be_judged_now_is_told_first(
    steward: Steward, tmp_path: Path, before: list[dict[str, list[dict[str, object]]]], code: int
) -> None:
    """It stands, for the check's own reason, until a look judges it again; also without `--since`."""
    now = datetime.now(UTC).replace(microsecond=0)
    verdicts = [
        a_verdict("tc-skew", "unknown", "No broker owns pulsar/system."),
        a_verdict("bundle-topic-skew", "clear"),
    ]
    for minutes, rows in enumerate([*before, {"verdicts": verdicts}], -len(before)):
        at = now + timedelta(minutes=minutes)
        last = written(tmp_path / f"taken_at={at:%Y%m%dT%H%M%SZ}", snapshot=meta(taken_at=at), **rows)

    ended = steward("checkup", "--snapshot", last, "--since", "30min", "--json", tmp_path / "out.json")

    text = " ".join(ended.out.split())
    told = "RESULT: tc-skew was critical at " in text and "cannot be judged now: No broker owns pulsar/system" in text
    assert (ended.code, told, "healthy" in text) == (code, bool(code), not code)
    assert "partial" not in text
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [each["check_id"] for each in document["no_longer_judged"]] == ["tc-skew"] * code


@pytest.mark.parametrize("table", ["findings", "verdicts", "brokers"])
def test_a_damaged_earlier_snapshot_does_not_stop_a_checkup(steward: Steward, tmp_path: Path, table: str) -> None:
    """Those before it still count."""
    now = datetime.now(UTC).replace(microsecond=0)
    unknown = [a_verdict("tc-skew", "unknown", "No broker owns pulsar/system.")]
    for ago, rows in ((2, skewed()), (1, skewed()), (0, {"verdicts": unknown})):
        at = now - timedelta(minutes=ago)
        last = written(tmp_path / f"taken_at={at:%Y%m%dT%H%M%SZ}", snapshot=meta(taken_at=at), **rows)
        if ago == 1:
            (tmp_path / f"taken_at={at:%Y%m%dT%H%M%SZ}" / table / "part-0.parquet").write_bytes(b"PAR1")
    ended = steward("checkup", "--snapshot", last)
    assert ended.code == 1
    assert f"tc-skew was critical at {now - timedelta(minutes=2):%Y-%m-%d %H:%M} UTC" in " ".join(ended.out.split())


def test_text_page_and_json_count_alike(steward: Steward, tmp_path: Path) -> None:
    """Information is no trouble in any of the three, and numbers by severity are of all findings, listed or not."""
    findings = [a_finding(), a_finding("info", "clock-skew"), a_finding("warning", "hot-bundle", subject="a/b/0x0_0x1")]
    verdicts = [a_verdict(each, "found") for each in ("tc-skew", "clock-skew")]
    verdicts.append(a_verdict("hot-bundle", "found", more=7, warning={"a/b": 7}))
    place, files = written(tmp_path / "s", findings=findings, verdicts=verdicts), (tmp_path / "p", tmp_path / "j")

    ended = steward("checkup", "--snapshot", place, "--html", files[0], "--json", files[1])

    document = json.loads(files[1].read_text(encoding="utf-8"))
    told = re.search(r"(\d+) troubles, (\d+) findings", ended.out)
    assert told is not None
    counts, troubles = document["counts"], document["troubles"]
    rows = re.findall(r'<td class="quiet">(\d+) findings?</td>', files[0].read_text(encoding="utf-8"))
    assert int(told[1]) == len(troubles) == len(rows) == 2
    assert int(told[2]) == counts["critical"] + counts["warning"] == sum(map(int, rows)) == 9
    assert sum(each["found"]["critical"] + each["found"]["warning"] for each in troubles) == 9
    assert (counts["listed"], len(document["information"])) == ({"critical": 1, "warning": 1, "info": 1}, 1)


def test_the_difference_from_an_earlier_look_is_told(steward: Steward, tmp_path: Path) -> None:
    """`--since` compares with the snapshot of then beside this one, and says where there is none."""
    then = NOW - timedelta(hours=9)
    written(tmp_path / f"taken_at={then:%Y%m%dT%H%M%SZ}", snapshot=meta(taken_at=then))
    now = written(tmp_path / "taken_at=20260301T120000Z", **skewed())
    assert "Since 2026-03-01 03:00 UTC: +1 trouble" in steward("checkup", "--snapshot", now, "--since", "8h").out
    alone = written(tmp_path / "alone", **skewed())
    ended = steward("checkup", "--snapshot", alone, "--since", "8h")
    assert (ended.code, "no earlier snapshot of east" in ended.err) == (1, True)
    assert "'8' is no span of time" in steward("checkup", "--snapshot", now, "--since", "8").err


@pytest.mark.parametrize(("options", "verbose"), [([], False), (["-v"], True), (["--verbose"], True)])
def test_everything_is_told_on_request(steward: Steward, snapshot: str, options: list[str], *, verbose: bool) -> None:
    """Sources and reasons are printed with `--verbose` only."""
    ended = steward("checkup", "--snapshot", snapshot, *options)

    assert ended.code == 1
    assert ("Source: docs/knowledge.md A" in ended.out) is verbose
    assert ("as it was looked at." in ended.out) is verbose
    assert ("(--verbose says why)" in ended.out) is not verbose


@pytest.mark.parametrize("command", ["checkup", "plan"])
@pytest.mark.parametrize("missing", ["findings", "verdicts"])
def test_a_snapshot_that_nobody_diagnosed_is_told(
    steward: Steward, snapshot: str, command: str, missing: str, golden: Golden
) -> None:
    """A snapshot without a diagnosis ends the command with exit code 2 and one line that says what to do."""
    shutil.rmtree(f"{snapshot}/{missing}")

    ended = steward(command, "--snapshot", f"{snapshot}/")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    golden(ended.err.replace(snapshot, "SNAPSHOT"))


def test_page_and_json_are_written(steward: Steward, snapshot: str, tmp_path: Path) -> None:
    """The page and the document are written beside the report, and their places go to standard error."""
    page, document = tmp_path / "a.html", tmp_path / "a.json"

    ended = steward("checkup", "--snapshot", snapshot, "--html", page, "--json", document)

    assert ended.code == 1
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    jsonschema.Draft202012Validator(schema()).validate(json.loads(document.read_text(encoding="utf-8")))
    assert ended.err.splitlines() == [f"written: {page}", f"written: {document}"]
    assert "RESULT" in ended.out


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_an_earlier_report_stays_where_the_disk_is_full(
    steward: Steward, snapshot: str, tmp_path: Path, option: str
) -> None:
    """A report that cannot be written as a whole leaves the earlier one as it is, and nothing beside it."""
    report = tmp_path / "reports" / "r"
    report.parent.mkdir()
    report.write_text("earlier", encoding="utf-8")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        ended = steward("checkup", "--snapshot", snapshot, option, report)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (ended.code, ended.err) == (2, f"error: {report} cannot be written: File too large\n")
    assert [each.read_text(encoding="utf-8") for each in report.parent.iterdir()] == ["earlier"]


def test_json_takes_the_place_of_text(steward: Steward, snapshot: str) -> None:
    """The document or the page is all that is printed if its place is `-`."""
    ended = steward("checkup", "--snapshot", snapshot, "--json", "-")

    assert json.loads(ended.out)["outcome"] == "findings"
    assert ended.code == 1
    assert steward("checkup", "--snapshot", snapshot, "--html", "-").out.startswith("<!doctype html>")


@row_by_row(
    "arguments, words",
    ([], "give either --admin-url"),
    (["--snapshot", "SNAPSHOT", "--admin-url", "http://b:1"], "give either --admin-url"),
    (["--snapshot", "no/such"], "no/such: there is no snapshot"),
    (["--snapshot", "SNAPSHOT", "--policy", "no/such.yaml"], "no/such.yaml: no such file"),
    (["--snapshot", "SNAPSHOT", "--html", "no/such/folder.html"], "--html no/such/folder.html: name a file"),
    (["--snapshot", "SNAPSHOT", "--json", "."], "--json .: name a file"),
    (["--snapshot", "SNAPSHOT", "--html", "-", "--json", "-"], "cannot both go to standard output"),
    (["--admin-url", "broker:8080"], "'broker:8080' is not an admin URL"),
    (["--admin-url", "http://user:secret@b:1"], "holds a user or password"),
    (["--admin-url", "http://b:1", "--token-file", "no/such"], "token file no/such cannot be read"),
    (["--kafka", "k:1", "--snapshot", "SNAPSHOT"], "give either --admin-url"),
    (["--kafka", "k"], "'k' is no address of a Kafka broker: expected host:port"),
    (["--kafka", "k:1", "--ca-file", "no/such"], "--ca-file is about Pulsar"),
    (["--kafka", "k:1", "--kafka-config", "no/such"], "no/such cannot be read"),
    (["--admin-url", "http://b:1", "--kafka-config", "f"], "--kafka-config is about Kafka"),
)
def test_what_cannot_be_looked_at_is_one_line(
    steward: Steward, snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    """Wrong arguments end the check-up with exit code 2 and one line with the reason on standard error."""
    monkeypatch.chdir(tmp_path)

    ended = steward("checkup", *(snapshot if each == "SNAPSHOT" else each for each in arguments))

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err
    assert "secret" not in ended.err


@row_by_row(
    "text, nothing",
    ("apply: {protected_namespaces: [pulsar/system]}", True),
    (f"clusters: {{{CLUSTER}: {{apply: {{protected_namespaces: [pulsar/system]}}}}}}", True),
    ("clusters: {another: {apply: {protected_namespaces: [pulsar/system]}}}", False),
)
def test_a_policy_changes_what_would_be_proposed(
    steward: Steward, snapshot: str, tmp_path: Path, text: str, *, nothing: bool
) -> None:
    """A protected namespace gets no steps, for a stated reason; a policy for another cluster has no effect."""
    policy = tmp_path / "p.yaml"
    policy.write_text(text, encoding="utf-8")

    ended = steward("checkup", "--snapshot", snapshot, "--policy", policy)
    planned = steward("plan", "--snapshot", snapshot, "--policy", policy)

    assert ("Nothing, for these reasons:" in ended.out) is nothing
    assert ("Guard" in ended.out) is nothing
    assert ("PUT /admin/v2/namespaces/pulsar/system/" in planned.out) is not nothing


def test_a_plan_is_shown_step_by_step(steward: Steward, snapshot: str) -> None:
    """The plan is printed with the call of each step, and with the remark that no ledger was named."""
    ended = steward("plan", "--snapshot", snapshot)

    assert ended.code == 0
    assert ended.out.count("call      PUT /admin/v2/namespaces/pulsar/system/") == 4
    assert "no ledger was named" in " ".join(ended.out.split())


def test_a_plan_of_nothing_says_why(steward: Steward, tmp_path: Path) -> None:
    """Of a healthy cluster the command says in a few lines how many checks were clear, and why with `--verbose`."""
    brief = steward("plan", "--snapshot", written(tmp_path / "s"))
    whole = steward("plan", "--snapshot", written(tmp_path / "t"), "--verbose")

    assert (brief.code, whole.code) == (0, 0)
    assert re.search(r"for these reasons:\n- Of \d+ checks, \d+ are clear and \d+ could not judge", brief.out)
    assert len(brief.out.splitlines()) < 10
    assert "Nothing would be proposed, for these reasons:\n- tc-skew is below its thresholds" in whole.out


def test_a_plan_as_json_is_the_plan(steward: Steward, snapshot: str) -> None:
    """The plan is printed as JSON in the very form that its digest is made of."""
    ended = steward("plan", "--snapshot", snapshot, "--json")

    plan = Plan.decoded(ended.out)
    assert plan.encoded().decode() == ended.out.rstrip("\n")
    assert len(plan.batches[0].steps) == 4


def test_bundles_at_rest_are_left_alone(steward: Steward, snapshot: str, tmp_path: Path) -> None:
    """A plan that moves a bundle leaves it alone if the named ledger has a move of it just before the snapshot."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    record_move(engine, "0x80000000_0x90000000", NOW - timedelta(minutes=5))
    engine.dispose()

    without = steward("plan", "--snapshot", snapshot)
    ended = steward("plan", "--snapshot", snapshot, "--ledger", url)

    assert "move 0x80000000_0x90000000" in without.out
    assert ended.code == 0
    assert "move 0x80000000_0x90000000" not in ended.out
    assert "cooldown" in ended.out
    assert "no ledger was named" not in " ".join(ended.out.split())


@pytest.mark.parametrize("check_id", BY_ID)
def test_every_check_is_explained(steward: Steward, monkeypatch: pytest.MonkeyPatch, check_id: str) -> None:
    """The explanation of a check has its title, its source and every step of its advice, also without its page."""
    monkeypatch.setattr(explain, "page_of", lambda _: None)
    info = BY_ID[check_id]

    ended = steward("explain", check_id)

    said = " ".join(ended.out.split())
    assert ended.code == 0
    assert info.title in said
    assert info.source in said
    assert [step for step in info.advice if " ".join(step.split()) not in said] == []


def test_thresholds_are_said_with_their_defaults(steward: Steward) -> None:
    """A check's thresholds are shown by their key in the policy, with default and meaning."""
    said = " ".join(steward("explain", "tc-skew").out.split())

    assert "tc_skew.warning_spread_coordinators: 3: most minus fewest" in said
    assert "Steward can propose one (tc_balance)" in said


@row_by_row(
    "given, words",
    ("tc-skw", "did you mean tc-skew"),
    ("tc_skew", "did you mean tc-skew"),
    ("TC-SKEW", "did you mean tc-skew"),
    ("qqqqqqqq", "`steward explain` lists them all"),
)
def test_a_check_that_is_none_is_told_with_what_may_be_meant(steward: Steward, given: str, words: str) -> None:
    """An unknown check ends the command with exit code 2 and one line that suggests a check or the list."""
    ended = steward("explain", given)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_all_checks_are_listed_in_the_guides_order(steward: Steward) -> None:
    out = steward("explain").out

    places = [out.index(f"  {check_id}\n") for check_id in BY_ID]
    assert places == sorted(places)


@pytest.mark.parametrize("terminal", [False, True])
def test_the_page_of_a_check_follows(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """A check's page is printed unchanged to a pipe and formatted to a terminal; a missing one is mentioned."""
    page = tmp_path / "tc-skew.md"
    page.write_text("# Title\n\n`a command`\n", encoding="utf-8")
    monkeypatch.setattr(explain, "page_of", lambda check_id: page if check_id == "tc-skew" else None)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    assert ("# Title\n\n`a command`\n" in steward("explain", "tc-skew").out) is not terminal
    assert "not at hand" in steward("explain", "bundle-topic-skew").out


def test_the_schema_is_printed(steward: Steward) -> None:
    """The command prints the JSON schema of check-ups."""
    assert json.loads(steward("schema").out) == schema()


def test_an_installed_package_says_where_documents_of_sources_are(
    steward: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "docs/ is " not in steward("explain", "tc-skew").out
    monkeypatch.setattr(explain, "installed_files", lambda: tmp_path)
    assert f"docs/ is {tmp_path / 'docs'}" in " ".join(steward("explain", "tc-skew").out.split())


def test_a_remedy_is_explained_as_one(steward: Steward) -> None:
    """Every name of a remedy leads to its page, and to the checks that it is for."""
    kinds = {each.remedied_by for each in BY_ID.values() if each.remedied_by}
    assert kinds == explain.REMEDY_PAGES.keys()
    pages = [project_files() / "docs" / "remediations" / f"{each}.md" for each in explain.REMEDY_PAGES.values()]
    assert [each for each in pages if not each.is_file()] == []
    ended = steward("explain", "tc-balance")
    assert (ended.code, ended.out) == (2, "")
    assert "tc_balance is no check but a remedy, which Steward can propose for tc-skew: its page is docs/" in ended.err


def test_no_advice_sets_anything_without_saying_to_what() -> None:
    """A command that is pasted as it stands has its values, or gaps that can be seen."""
    commands = [
        command
        for check in BY_ID.values()
        for advice in check.advice
        for command in re.findall(r"`(pulsar-admin [^`]*\bset-[^`]*)`", advice)
    ]
    assert commands
    assert [each for each in commands if not re.search(r" -\w|\.\.\.", each)] == []
