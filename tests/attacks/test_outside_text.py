"""Outside text is text: names, reasons and comments are read as they are, and what cannot be seen is spelled out.

Every test hands hostile text to an outlet: the approval, the run's report, terminal, page, JSON, events, logs, errors.
What a person reads there may hold no character that steers a terminal, turns the order of letters round or hides, and
no name may become markup, a link, a template or a path.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException
from markdown_it import MarkdownIt
from rich.console import Console

from lab.simulator import running_simulator
from pulsar_steward.cli import main
from pulsar_steward.cli.output import print_lines, progress, tell_exactly
from pulsar_steward.errors import (
    AdminError,
    ConfigurationError,
    LedgerTampered,
    PolicyError,
    ServerError,
    StewardError,
)
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, Proof, RecordedAnswer, StepOutcome
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.event import Event
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import ROLLBACK, Placement
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, GuardResult
from pulsar_steward.orchestration import batch_tasks, batches, remediating
from pulsar_steward.orchestration.approval import ApproveBatch
from pulsar_steward.orchestration.approval_response import APPROVE, REJECT, Question, interpret
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.planners.from_snapshot import planning_facts_of
from pulsar_steward.planners.moves import Moves
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.place import policy_file
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report import approval
from pulsar_steward.report.checkup import terminal
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.report.checkup.json_report import as_json
from pulsar_steward.report.checkup.plan_text import plan_lines
from pulsar_steward.report.outcome import BatchStory, story
from pulsar_steward.snapshots.read import open_snapshot
from tests.apply.worksite import SKEWED, Worksite
from tests.builders import CLUSTER, NOW, a_batch, a_move, a_plan, a_step
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from markdown_it.token import Token

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.report.checkup.document import Checkup

SPELLED = {
    # characters that turn the order of letters round
    "\u200e": r"\u200e",
    "\u200f": r"\u200f",
    "\u061c": r"\u061c",
    "\u202a": r"\u202a",
    "\u202b": r"\u202b",
    "\u202c": r"\u202c",
    "\u202d": r"\u202d",
    "\u202e": r"\u202e",
    "\u2066": r"\u2066",
    "\u2067": r"\u2067",
    "\u2068": r"\u2068",
    "\u2069": r"\u2069",
    # characters without any width
    "\u200b": r"\u200b",
    "\u200c": r"\u200c",
    "\u200d": r"\u200d",
    "\u2060": r"\u2060",
    "\u2064": r"\u2064",
    "\ufeff": r"\ufeff",
    "\u00ad": r"\xad",
    "\u180e": r"\u180e",
    "\u034f": r"\u034f",
    "\U000e0061": r"\U000e0061",
    # variation selectors
    "\ufe00": r"\ufe00",
    "\ufe0f": r"\ufe0f",
    "\u180b": r"\u180b",
    "\U000e0100": r"\U000e0100",
    # what looks like a blank and is none
    "\u00a0": r"\xa0",
    "\u1680": r"\u1680",
    "\u2003": r"\u2003",
    "\u202f": r"\u202f",
    "\u205f": r"\u205f",
    "\u3000": r"\u3000",
    "\u3164": r"\u3164",
    "\u115f": r"\u115f",
    "\uffa0": r"\uffa0",
    "\u2800": r"\u2800",
    # controls, and what ends a line
    "\x01": r"\x01",
    "\x07": r"\x07",
    "\x08": r"\x08",
    "\t": r"\t",
    "\n": r"\n",
    "\r": r"\r",
    "\x0b": r"\x0b",
    "\x0c": r"\x0c",
    "\x1b": r"\x1b",
    "\x1c": r"\x1c",
    "\x7f": r"\x7f",
    "\x85": r"\x85",
    "\x9b": r"\x9b",
    "\u2028": r"\u2028",
    "\u2029": r"\u2029",
    # what nobody assigned, or everybody privately
    "\ue000": r"\ue000",
    "\uffff": r"\uffff",
}
"""Each character that may not reach a person's eyes, and how it is spelled."""

FORGED = "FORGED"
HOSTILE = "".join(f"a{each}" for each in SPELLED) + f"\n{FORGED}\u202e\x1b[31m"
READ = "".join(f"a{each}" for each in SPELLED.values()) + rf"\n{FORGED}\u202e\x1b[31m"
"""A name of all of them, which also forges a line of its own and colours it; and how it is read."""

SCRIPTS = "Grüße-注文-заказ-注文-سفارش-הזמנה-ऑर्डर-주문-cafe\u0301-a\u0327-🚚"
"""Letters of many scripts, marks above and below letters among them: they stay as they are."""


def unseen(text: str, *, lines: bool = False) -> set[str]:
    """The characters of a text that should have been spelled out; line breaks are its own where it has `lines`."""
    return {each for each in text if each in SPELLED and not (lines and each == "\n")}


# Things that are shown


def namespace(name: str) -> str:
    """A namespace of a name, which a slash would divide."""
    return f"shop/{name.replace('/', ':')}"


def a_change(name: str) -> ChangeSetting:
    """A quota of a namespace of this name, which evicts."""
    quota = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)
    return ChangeSetting(namespace=namespace(name), name=SettingName.SIZE_QUOTA, before=None, after=quota)


def a_batch_of(name: str) -> Batch:
    """A batch in which everything that comes from outside has this name."""
    move = a_step(
        a_move(namespace=namespace(name), bundle=name, source=name, target=f"{name}:2"),
        step_id="b1.s01",
        why=name,
        effect=name,
        undo_note=name,
        guards=(GuardResult(guard="owner", passed=False, reason=name),),
    )
    quota = a_step(
        a_change(name),
        step_id="b1.s02",
        why=name,
        effect=name,
        undo_note=name,
        loss=Loss(topics=(TopicLoss(topic=name, messages=1, bytes=1),), more=1, messages=2, bytes=2),
        after=("b1.s01",),
    )
    return a_batch(
        move,
        quota,
        title=name,
        unit=name,
        findings=(Finding(check_id="tc-skew", severity=Severity.WARNING, subject=name, evidence=name, figures={}),),
        before=(Placement(name, 1),),
        after=(Placement(name, 2),),
    )


def a_plan_of(name: str) -> Plan:
    """A plan of that batch, of a cluster of this name."""
    return a_plan(a_batch_of(name), cluster=name, snapshot_id=name, notes=(name, f"{name}: not taken back"))


def an_answer_of(name: str) -> RecordedAnswer:
    """An approval by somebody of this name, with the same as a comment."""
    return RecordedAnswer(
        answer_id=1,
        plan_id="p1",
        batch_id="b1",
        run=name,
        decision=Decision.APPROVED,
        answered_by=name,
        answered_at=NOW,
        reason=name,
        comment=name,
        step_ids=("b1.s01",),
    )


def a_story_of(name: str) -> BatchStory:
    """What came of that batch."""
    plan = a_plan_of(name)
    return BatchStory(
        plan=plan,
        batch=plan.batches[0],
        answer=an_answer_of(name),
        outcomes=tuple(
            StepOutcome(
                plan_id="p1",
                batch_id="b1",
                step_id=step.step_id,
                intent_id=None,
                run=name,
                at=NOW,
                outcome=Outcome.DONE if number else Outcome.FAILED,
                reason=name,
                proof={},
            )
            for number, step in enumerate(plan.batches[0].steps)
        ),
        proof=Proof(
            plan_id="p1",
            batch_id="b1",
            run=name,
            at=NOW,
            proved=False,
            reason=name,
            shown={"placement": {name: {name: 1}}},
        ),
    )


def a_checkup_of(name: str, folder: Path) -> Checkup:
    """A check-up in which cluster, brokers, namespaces, topics, findings and reasons have this name."""
    snapshot = open_snapshot(
        written(
            folder,
            snapshot=meta(
                cluster=name,
                pulsar_cluster=name,
                pulsar_version=name,
                unread_brokers=[f"{name}:1"],
                unread_namespaces=[f"shop/{name}"],
            ),
            brokers=[
                {"broker": f"{name}:0", "read": True, "leader": True, "topics": 3, "read_milliseconds": 3},
                {"broker": f"{name}:1", "read": False, "leader": False, "failure": name, "read_milliseconds": 3},
            ],
            bundles=[{"namespace": f"shop/{name}", "bundle": name, "owner_known": True, "topics": 900}],
            namespaces=[{"namespace": f"shop/{name}", "bundles": 1, "boundaries": []}],
            topics=[{"topic": f"persistent://shop/{name}", "namespace": f"shop/{name}", "backlog_bytes": 9}],
            transaction_coordinators=[],
            findings=[a_finding(subject=name, evidence=name)],
            verdicts=[a_verdict("tc-skew", "found", name), a_verdict("bundle-topic-skew", "unknown", f"`{name}`")],
        )
    )
    return checkup_of(snapshot, make_plan(planning_facts_of(snapshot, Policy(), Moves())), Policy())


# Every outlet


def printed(lines: Iterable[Any]) -> str:
    """What a terminal gets, with Rich's own colours taken away."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    with console.capture() as capture:
        print_lines(lines, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get())


MANY_LINES: dict[str, Callable[[str, Path], str]] = {
    "the approval": lambda name, _: approval.body(a_plan_of(name), a_batch_of(name), Policy()),
    "the second person's approval": lambda name, _: approval.body(
        a_plan_of(name), a_batch_of(name), Policy(), first=an_answer_of(name)
    ),
    "the approval of a way back": lambda name, _: approval.body(
        a_plan_of(name), msgspec.structs.replace(a_batch_of(name), kind=ROLLBACK), Policy()
    ),
    "the run's report": lambda name, _: story([a_story_of(name)]),
    "a check-up in a terminal": lambda name, folder: printed(terminal.lines(a_checkup_of(name, folder), 80)),
    "a plan in a terminal": lambda name, _: printed(plan_lines(a_plan_of(name), (name,), 80)),
    "a check-up's page": lambda name, folder: as_html(a_checkup_of(name, folder)),
}
ONE_LINE: dict[str, Callable[[str], str]] = {
    "the approval's subject": lambda name: approval.subject(a_plan_of(name), a_batch_of(name)),
    "a row of Airflow's lists": lambda name: BatchRef.of(a_plan_of(name), a_batch_of(name)).label,
    "a tick's label": lambda name: "".join(approval.labels(a_batch_of(name)).values()),
    "why a run failed": lambda name: "; ".join(a_story_of(name).troubles),
    "a call that failed": lambda name: str(AdminError("GET", name, name, name)),
    "a call that was answered 500": lambda name: str(ServerError("GET", name, name, name, 500)),
    "an error of a policy": lambda name: str(PolicyError(name, name)),
    "an error of a setting": lambda name: str(ConfigurationError(f"there is no connection {name}")),
    "an error of the ledger": lambda name: str(LedgerTampered(name)),
}


@pytest.mark.parametrize("outlet", MANY_LINES)
def test_what_cannot_be_seen_is_spelled_out_on_every_page(outlet: str, tmp_path: Path) -> None:
    """No line of a page is a name's own, and the name can be read whole."""
    text = MANY_LINES[outlet](HOSTILE, tmp_path / "s")
    head = text.split("<script")[0]  # plotly's script, which no name gets into, has some of these characters

    assert unseen(head, lines=True) == set()
    assert [line for line in text.splitlines() if line.strip(" -*|").startswith(FORGED)] == []
    spelled = READ.replace("\\", "\\\\") if "approval" in outlet or "report" in outlet else READ
    assert spelled.replace("[", "\\[") in head or READ in head


def every_line(name: str) -> dict[str, str]:
    """What each outlet of one line makes of a name."""
    return {outlet: made(name) for outlet, made in ONE_LINE.items()}


@pytest.mark.parametrize("character", SPELLED, ids=lambda each: f"U+{ord(each):04X}")
def test_each_character_that_cannot_be_seen_is_spelled_out_in_a_line(character: str) -> None:
    """The same spelling everywhere."""
    for outlet, line in every_line(f"a{character}b").items():
        assert (outlet, f"a{SPELLED[character]}b" in line, unseen(line)) == (outlet, True, set())


def test_letters_of_any_script_stay_as_they_are() -> None:
    """Marks on letters belong to them."""
    assert [outlet for outlet, line in every_line(SCRIPTS).items() if SCRIPTS not in line] == []


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("\u0338n", r"\u0338n"),
        ("n/\u0338n", r"n/\u0338n"),
        ("1\u0338", r"1\u0338"),
        ("\u200b\u0301n", r"\u200b\u0301n"),
        ("\u20ddn", r"\u20ddn"),
        ("\x00", r"\x00"),
        ("\ufe0f\u0301n", r"\ufe0f\u0301n"),
    ],
)
def test_a_mark_has_a_letter_to_stand_on(name: str, read: str) -> None:
    """One at the beginning of a name would stand on what is before it."""
    assert [outlet for outlet, line in every_line(name).items() if read not in line] == []


@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDCE4)])
def test_half_a_character_is_spelled_out(half: str) -> None:
    """File names and answers may hold one, which no terminal, file or database takes."""
    told = [str(ConfigurationError(half)), str(PolicyError(half)), approval.subject(a_plan(cluster=half), a_batch())]

    assert [words for words in told if f"\\u{ord(half):04x}" not in words] == []


def test_marks_cannot_be_piled_up_over_other_lines() -> None:
    """A few above one letter are a language, fifty are a curtain."""
    assert approval.subject(a_plan(cluster="a" + "\u0301" * 50), a_batch()).count("\u0301") < 10


# Markdown

LINKS = [
    "https://evil.example/x",
    "HTTP://evil.example",
    "see(https://evil.example)",
    "|https://evil.example|",
    "`https://evil.example`",
    "a`b|https://evil.example/a|b`c",
    "www.evil.example",
    "x,www.evil.example/y",
    "ftp://evil.example",
    "alice@evil.example",
    "mailto:alice@evil.example",
    "xmpp:alice@evil.example/x",
    "https://www.evil.example",
    "persistent://a@evil.example/b",
    r"https:\//evil.example",
    "https&#58;//evil.example",
    "<https://evil.example>",
    "<alice@evil.example>",
    "[x](https://evil.example)",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/p.png)",
    "[x][y]",
    "[x]: https://evil.example",
    "[^1]",
    "[^1]: note",
]
MARKUP = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<!-- x -->",
    "<details><summary>x</summary>",
    "&lt;b&gt;",
    "&#x202e;x",
    "# heading",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "1) item",
    "> quote",
    "---",
    "***",
    "===",
    "- - -",
    "    code",
    "```",
    "~~~",
    "`x`",
    "``",
    "**x**",
    "__x__",
    "*x*",
    "~~x~~",
    "a | b",
    "| a | b |",
    "|---|---|",
    "\\",
    "\\|",
    "x\\",
    "- [ ] task",
    ":---:",
]
OWN = ("text", "text_special", "code_inline", "softbreak")
"""Tokens of words, which a name may have."""
AUTOLINKS = (
    re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)", re.IGNORECASE),
    re.compile(r"(^|[^\w])([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)"),
)
"""What the Markdown of Airflow's pages (remark-gfm) looks for in text once backslashes and entities are resolved."""

RENDERED: dict[str, Callable[[str], str]] = {
    name: (lambda words, made=made: made(words, None))  # type: ignore[misc]  # no Markdown needs a folder
    for name, made in MANY_LINES.items()
    if "approval" in name or "report" in name
}


def tokens(markdown: str) -> list[Token]:
    """Every token that GitHub's Markdown makes of a text, links without brackets included."""
    parser = MarkdownIt("gfm-like")
    assert parser.linkify is not None
    parser.linkify.set({"fuzzy_link": False})  # GitHub's own links need a scheme or `www.`, which is added here
    parser.linkify.add("www.", {"validate": re.compile(r"^[-.\w]+")})
    parser.linkify.add("//", None)
    return [each for token in parser.parse(markdown) for each in (token, *(token.children or ()))]


def words_of(made: Iterable[Token]) -> str:
    """What of a text is read."""
    return " ".join("".join(each.content for each in made if each.type in OWN).split())


def runs(made: Iterable[Token]) -> Iterator[str]:
    """The text between two other things, as one piece each: what an autolink may be found in."""
    run = ""
    for token in made:
        if token.type in {"text", "text_special"}:
            run += token.content
        else:
            yield run
            run = ""
    yield run


@cache
def usual(outlet: str) -> Counter[str]:
    """The things that Markdown makes of an outlet's text where a name is harmless."""
    return things(tokens(RENDERED[outlet]("name")))


def things(made: Iterable[Token]) -> Counter[str]:
    """How many of each kind, other than words."""
    return Counter(each.type for each in made if each.type not in OWN)


@pytest.mark.parametrize("outlet", RENDERED)
@pytest.mark.parametrize("name", [*LINKS, *MARKUP])
def test_no_name_becomes_markup_where_markdown_is_rendered(outlet: str, name: str) -> None:
    """It makes no link, image, tag, heading, list, table or emphasis that another name would not make.

    Airflow's pages look for addresses in the text that comes of the Markdown, where backslashes are gone: so none is
    left in it, but as code.
    """
    made = tokens(RENDERED[outlet](name))

    assert things(made) == usual(outlet)
    assert " ".join(name.split()) in words_of(made)
    assert [run for run in runs(made) for autolink in AUTOLINKS if autolink.search(run)] == []


# Templates

JINJA = "{{ 7 * 7 }}{% raw %}{# x #}"


class Mapped:
    """Stands for the argument of a mapped group, which Airflow asks for its value."""

    def resolve(self, _context: Mapping[str, Any]) -> Any:
        """What the first task of a run hands on of a batch."""
        return msgspec.to_builtins(BatchRef.of(a_plan_of(JINJA), a_batch_of(JINJA)))


def test_no_name_becomes_a_template() -> None:
    """What Airflow renders are fields of ours; names are their values and are not rendered in turn."""
    task = ApproveBatch(task_id="approve", batch=Mapped(), map_index_template="{{ task.batch['label'] }}")
    environment = task.get_template_env()
    task.render_template_fields({}, environment)
    index = environment.from_string(str(task.map_index_template)).render(task=task)

    assert task.batch["label"] == index == f"{JINJA} b1: {JINJA}"
    assert {"subject", "body"} & set(task.template_fields) == set()


# Airflow's tasks


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> Iterator[Worksite]:
    """Three made-up brokers and a ledger behind connections of Airflow's; only alice may answer."""
    assert variables == {}
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    (tmp_path / "policy.yaml").write_text("approval: {assigned_users: [alice]}", encoding="utf-8")
    with running_simulator(SKEWED) as simulator:
        admin = {"conn_type": "http", "extra": {"urls": simulator.admin_urls}}
        monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_ADMIN_{CLUSTER.upper()}", json.dumps(admin))
        monkeypatch.setenv("AIRFLOW_CONN_STEWARD_LEDGER", json.dumps({"conn_type": "sqlite", "extra": {"url": url}}))
        monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
        engine = open_ledger(url)
        yield Worksite(simulator, engine)
        engine.dispose()


def a_recorded_plan(site: Worksite) -> Plan:
    """A plan of a move whose title, effect and way back are hostile."""
    step = a_step(site.move(0), effect=HOSTILE, undo_note=HOSTILE)
    plan = a_plan(a_batch(step, title=HOSTILE), taken_at=site.clock(), notes=(HOSTILE,))
    return site.record(plan)


def a_context() -> Any:
    """What Airflow hands a task, as far as ours look at it."""
    instance = SimpleNamespace(dag_id="dag", run_id="run", map_index=0)
    return {"ti": instance, "dag_run": SimpleNamespace(triggering_user_name=None)}


def an_approval_of(plan: Plan) -> ApproveBatch:
    """The task that asks about the plan's only batch."""
    return ApproveBatch(task_id="approve", batch=msgspec.to_builtins(BatchRef.of(plan, plan.batches[0])))


def test_a_question_in_airflow_holds_nothing_hidden(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its headline, nor its text, nor the labels of its ticks."""
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    task = an_approval_of(a_recorded_plan(site))
    task.execute(a_context())

    for words in (task.subject, task.body or "", json.dumps(task.serialized_params, ensure_ascii=False)):
        assert unseen(words, lines=True) == set()
    assert READ in task.subject


def test_what_an_answer_came_to_holds_nothing_hidden(site: Worksite) -> None:
    """The task returns it, and Airflow's pages show what tasks return."""
    event = {
        "chosen_options": [APPROVE],
        "params_input": {"steps": ["b1.s01"], "comment": HOSTILE},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": "7", "name": HOSTILE},
    }
    told = an_approval_of(a_recorded_plan(site)).execute_complete(a_context(), event)

    assert told["decision"] == "malformed"
    assert told["reason"].startswith(f"{READ} may not answer")


def test_a_dry_run_has_no_line_but_its_own(site: Worksite) -> None:
    """Its text is printed into the log, and kept."""
    plan = a_recorded_plan(site)
    text = remediating.dry_run([remediating.RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], "dag/run")

    assert unseen(text, lines=True) == set()
    assert text.count("\n") == 5
    assert text.count(READ) == 3


def test_a_dry_run_of_nothing_says_why_in_one_line(site: Worksite) -> None:
    """Notes name bundles and what keeps them."""
    plan = msgspec.structs.replace(a_plan(notes=(HOSTILE, HOSTILE)), batches=(), taken_at=site.clock())
    site.writes.record_plan(plan, site.clock())
    text = remediating.dry_run([remediating.RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], "dag/run")

    assert text.endswith(f"changes nothing: {READ}; {READ}")


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
def test_what_a_task_of_a_batch_says_holds_nothing_hidden(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    """Whether it ends well, is skipped, or fails: brokers' reasons are in it."""
    told = a_story_of(HOSTILE)
    outcomes = tuple(msgspec.structs.replace(each, outcome=outcome) for each in told.outcomes)
    proof = msgspec.structs.replace(told.proof, proved=outcome is Outcome.DONE) if told.proof else None
    monkeypatch.setattr(batch_tasks, "_named_run", lambda _: "dag/run/0")
    monkeypatch.setattr(batches, "apply_batch", lambda *_: outcomes)
    monkeypatch.setattr(batches, "verify_batch", lambda *_: proof)
    monkeypatch.setattr(batches, "was_approved", lambda *_: True)
    ref = msgspec.to_builtins(BatchRef.of(told.plan, told.batch))

    for task in (batch_tasks._apply, batch_tasks._verify):
        try:
            said = str(task.function(ref))
        except AirflowFailException as error:
            said = str(error)
        assert READ.replace("\\", "\\\\") in said or READ in said
        assert unseen(said) == set()


# Paths


@pytest.mark.parametrize("name", ["../../etc/steward", "/etc/steward", "a/b", "..", ".", "", "a\x00b", "-x", "a\nb"])
def test_no_clusters_name_becomes_a_path(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The policy that rules what may be done is no file of whoever names the cluster."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="cluster"):
        policy_file(name)


# Answers

IDS = ("b1.s01", "b1.s02")
ASKED = Question(plan=a_plan(a_batch(*(a_step(step_id=each) for each in IDS))), batch_id="b1", run="dag/run/0")
LONG = "x" * 5000


def deep() -> list[Any]:
    """A list in a list in a list, a hundred thousand times."""
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def answered(option: str = APPROVE, *, name: str = "alice", **form: Any) -> Answer:
    """What an answer by a person comes to, with these fields of the form."""
    event = {
        "chosen_options": [option],
        "params_input": {"steps": list(IDS), "comment": "", **form},
        "responded_at": NOW,
        "responded_by_user": {"id": "7", "name": name},
    }
    return interpret(event, ASKED, ApprovalPolicy(), NOW)


def recorded(answer: Answer, folder: Path) -> RecordedAnswer:
    """The same as the ledger gives it back."""
    engine = open_ledger(f"sqlite:///{folder / 'answers.db'}")
    writer = LedgerWriter(engine)
    writer.record_plan(ASKED.plan, NOW)
    writer.record_answer(answer)
    (read,) = LedgerReader(engine).answers(ASKED.plan.plan_id, "b1")
    engine.dispose()
    return read


@pytest.mark.parametrize("comment", [LONG, "\n" * 3 + LONG, "x" * 1_000_000, "\0" + LONG])
def test_a_comment_without_end_is_cut_and_the_answer_says_so(comment: str) -> None:
    """A no stays one; a yes beside more than anybody will read is none."""
    no, yes = answered(REJECT, comment=comment), answered(comment=comment)

    assert (no.decision, yes.decision, yes.step_ids, yes.digest) == (Decision.REJECTED, Decision.MALFORMED, (), None)
    for answer in (no, yes):
        assert len(answer.comment) < 4100
        assert answer.comment.endswith("…")
        assert f"{len(comment.strip()):,} characters, of which 4,000 are kept" in answer.reason


def test_a_comment_that_just_fits_is_kept_whole() -> None:
    """Without the blanks around it."""
    answer = answered(comment=f" {'x' * 4000}\n")

    assert (answer.decision, answer.comment) == (Decision.APPROVED, "x" * 4000)


@pytest.mark.parametrize("option", [APPROVE, REJECT])
@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("a\0b", r"a\x00b"),
        (f"a{chr(0xD800)}b", r"a\ud800b"),
        ("two\nlines \u202e\x1b[31m", "two\nlines \u202e\x1b[31m"),
    ],
)
def test_no_comment_keeps_an_answer_out_of_the_ledger(option: str, comment: str, kept: str, tmp_path: Path) -> None:
    """What no database takes is spelled out where it enters; all else is kept as it was said."""
    answer = recorded(answered(option, comment=comment), tmp_path)

    assert answer.decision is (Decision.APPROVED if option == APPROVE else Decision.REJECTED)
    assert answer.comment == kept


@pytest.mark.parametrize("comment", [7, ["x"], {"a": LONG}, True])
def test_a_no_is_a_no_whatever_stands_in_the_comment(comment: object) -> None:
    """A yes with something else than a text is none; what was there is told, shortly."""
    no, yes = answered(REJECT, comment=comment), answered(comment=comment)

    assert (no.decision, yes.decision) == (Decision.REJECTED, Decision.MALFORMED)
    assert "the comment is not a text but" in no.reason
    assert len(no.reason) < 400


@pytest.mark.parametrize("name", ["x" * 201, "a\0b", f"a{chr(0xD800)}b"])
def test_nobody_approves_by_a_name_that_cannot_be_kept(name: str, tmp_path: Path) -> None:
    """Two such people might be recorded as one; anybody may say no."""
    no = recorded(answered(REJECT, name=name), tmp_path)

    assert answered(name=name).decision is Decision.MALFORMED
    assert no.decision is Decision.REJECTED
    assert no.answered_by is not None
    assert len(no.answered_by) <= 200


@pytest.mark.parametrize(
    "ticks",
    [
        pytest.param(["b1.s01"] * 1_000_000, id="a million"),
        pytest.param([*IDS, "b1.s01"], id="more than there are"),
        pytest.param(["x" * 1_000_000], id="a million letters"),
        pytest.param("x" * 1_000_000, id="a text"),
        pytest.param([["b1.s01"] * 1000] * 2, id="lists"),
        pytest.param([{str(number): LONG for number in range(1000)}], id="objects"),
        pytest.param({str(number): LONG for number in range(1000)}, id="an object"),
        pytest.param([10**5000], id="a number of 5,000 digits"),
        pytest.param([chr(0xD800), "\0\n\u202e"], id="no characters"),
        pytest.param(deep(), id="depths"),
        pytest.param([deep()], id="depths below"),
    ],
)
def test_ticks_without_end_are_no_approval_and_their_reason_is_short(ticks: object, tmp_path: Path) -> None:
    """Nor do they take long, or stay out of the ledger."""
    answer = answered(steps=ticks)

    assert (answer.decision, answer.step_ids, answer.digest) == (Decision.MALFORMED, (), None)
    assert "not a list of steps of this batch" in answer.reason
    assert len(answer.reason) < 400
    assert recorded(answer, tmp_path).reason == answer.reason


@pytest.mark.parametrize(
    "event",
    [
        {"error": LONG},
        {"error": [LONG] * 1000},
        {"error": deep()},
        {"chosen_options": [LONG] * 1000, "responded_at": NOW, "responded_by_user": {"id": "7", "name": "alice"}},
        {"chosen_options": LONG, "responded_at": NOW, "responded_by_user": {"id": "7", "name": "alice"}},
        {"chosen_options": [deep()], "responded_at": LONG, "responded_by_user": deep()},
    ],
    ids=["error", "errors", "a deep error", "options", "no options", "depths"],
)
def test_whatever_cannot_be_understood_is_told_in_a_few_words(event: dict[str, Any]) -> None:
    """And permits nothing."""
    answer = interpret(event, ASKED, ApprovalPolicy(), NOW)

    assert answer.decision in {Decision.MALFORMED, Decision.NO_ANSWER}
    assert len(answer.reason) < 400


# The terminal

RICH = [
    "[red]x[/red]",
    "[link=https://evil.example]x[/link]",
    "[/]",
    "[bold",
    ":smiley:",
    "\\[red]",
    "[@click=app.quit]x[/]",
    "https://evil.example",
]
ESCAPES = [
    "\x1b[2J",
    "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x90q\x9c",
    "\x1bc",
    "\r\x1b[K",
]
IN_A_TERMINAL = [name for name in MANY_LINES if "terminal" in name]


@pytest.mark.parametrize("outlet", IN_A_TERMINAL)
@pytest.mark.parametrize("name", RICH)
def test_no_name_becomes_markup_in_a_terminal(outlet: str, name: str, tmp_path: Path) -> None:
    """Rich knows tags, links and names of pictures: of a name it shows the letters."""
    assert name in MANY_LINES[outlet](name, tmp_path / "s")


@pytest.mark.parametrize("outlet", IN_A_TERMINAL)
@pytest.mark.parametrize("name", ESCAPES)
def test_no_name_steers_a_terminal(outlet: str, name: str, tmp_path: Path) -> None:
    """Nothing but Rich's own colours reaches it."""
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", MANY_LINES[outlet](name, tmp_path / "s")) is None


def test_progress_of_a_job_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What a job tells is read from its log."""
    with progress() as say:
        say(HOSTILE)

    assert capsys.readouterr().err == f"{READ}\n"


# The page


class Read(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self._silent = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        self._silent = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the base class's signature
        """A tag closes."""
        self._silent = False

    def handle_data(self, data: str) -> None:
        """Text."""
        if not self._silent:
            self.text += data


def figures_of(page: str) -> str:
    """Every text in the data of a page's drawings."""
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page)

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for each in value:
                yield from texts(each)
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from texts(key)
                yield from texts(each)

    return "".join(texts(json.loads(figures)))


def test_what_cannot_be_seen_is_spelled_out_in_text_attributes_and_drawings_of_the_page(tmp_path: Path) -> None:
    """Plotly draws what the data says."""
    page = as_html(a_checkup_of(HOSTILE, tmp_path / "s"))
    read = Read(page)

    assert READ in read.text
    assert unseen(read.text, lines=True) == set()
    assert unseen("".join(read.attributes)) == set()
    assert unseen(figures_of(page)) == set()
    assert r"\u202e" in figures_of(page)


@pytest.fixture(scope="module")
def usual_tags(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """The tags of a page on which every name is harmless."""
    return Counter(Read(as_html(a_checkup_of("n", tmp_path_factory.mktemp("usual") / "s"))).tags)


@pytest.mark.parametrize(
    "name",
    [
        '"><img src=x onerror=alert(1)>',
        "</script><script>alert(1)</script>",
        "</title><img src=x>",
        "<!--",
        "&lt;b&gt;&#x202e;",
        "`</code><b>x</b>`",
        "https://evil.example",
        '<a href="https://evil.example">x</a>',
    ],
)
def test_no_name_becomes_a_tag_of_the_page(name: str, usual_tags: Counter[str], tmp_path: Path) -> None:
    """In its text, its attributes, and the data of its drawings; plotly too would take tags in a text for its own."""
    page = as_html(a_checkup_of(name, tmp_path / "s"))

    assert Counter(Read(page).tags) == usual_tags
    assert f"`{name}`" in Read(page).text
    assert not re.search(r"<(?!br>|extra>|/extra>|b>|/b>)", figures_of(page))


# JSON


def an_event(name: str) -> Event:
    """An event about something of this name."""
    return Event(
        event="outcome",
        cluster=name,
        plan_id=name,
        batch_id="b1",
        run=name,
        at=NOW,
        result="done",
        reason=name,
        by=name,
        values={name: [name]},
        ledger_head="0:0",
    )


MACHINES: dict[str, Callable[[str, Path], tuple[str, Callable[[Any], str]]]] = {
    "an event": lambda name, _: (an_event(name).encoded().decode(), lambda read: read["reason"]),
    "a check-up": lambda name, folder: (as_json(a_checkup_of(name, folder)), lambda read: read["about"]["cluster"]),
}


@pytest.mark.parametrize("outlet", MACHINES)
def test_json_shows_what_cannot_be_seen_and_means_the_same(outlet: str, tmp_path: Path) -> None:
    """People read it too, with `tail`; whoever decodes it gets the very name."""
    text, name_in = MACHINES[outlet](HOSTILE, tmp_path / "s")

    assert unseen(text, lines=True) == set()
    assert name_in(json.loads(text)) == HOSTILE


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plans_very_bytes_are_for_programs_and_a_terminal_gets_them_escaped(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """Digests are made of the bytes; a person reads the other, which means the same."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    tell_exactly(a_plan_of(HOSTILE).encoded())
    out = capfdbinary.readouterr().out

    assert json.loads(out) == json.loads(a_plan_of(HOSTILE).encoded())
    assert (unseen(out.decode(), lines=True) == set()) is terminal
    assert (out == a_plan_of(HOSTILE).encoded() + b"\n") is not terminal


def test_json_keeps_letters_of_any_script() -> None:
    """They can be read, so they are not spelled out."""
    assert SCRIPTS in an_event(SCRIPTS).encoded().decode()


# Logs


@pytest.mark.parametrize("name", ["pulsar_steward.admin.transport", "pulsar_steward.apply.perform", "steward_spark.x"])
@pytest.mark.parametrize("as_argument", [True, False], ids=["argument", "message"])
def test_no_reason_forges_a_line_of_the_log(name: str, *, as_argument: bool) -> None:
    """Whichever of Steward's loggers it goes to, and whoever writes it down."""
    written_down = io.StringIO()
    handler = logging.StreamHandler(written_down)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    log = logging.getLogger(name)
    log.addHandler(handler)
    try:
        if as_argument:
            log.warning("the broker says: %s", HOSTILE)
        else:
            log.warning(f"the broker says: {HOSTILE}")  # noqa: G004 - that is the case
    finally:
        log.removeHandler(handler)

    assert written_down.getvalue() == f"WARNING {name} the broker says: {READ}\n"


def broken(*_: object, **__: object) -> int:
    """Fails as a library may that quotes names."""
    raise KeyError("x") from ValueError(HOSTILE)


def test_no_error_forges_a_line_of_the_log() -> None:
    """A trace has a line for each call, and one for what each error says."""
    written_down = io.StringIO()
    handler = logging.StreamHandler(written_down)
    log = logging.getLogger("steward_spark.observing")
    log.addHandler(handler)
    try:
        broken()
    except KeyError:
        log.exception("a check is broken")
    finally:
        log.removeHandler(handler)

    told = written_down.getvalue()
    assert f"\nValueError: {READ}\n" in told
    assert told.endswith("KeyError: 'x'\n")
    assert unseen(told, lines=True) == set()


def test_a_log_line_that_cannot_be_put_together_is_told_as_always(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong number of arguments stops nothing."""
    log = logging.Logger("pulsar_steward.made_up")  # noqa: LOG001 - one that pytest does not listen to
    log.addHandler(logging.StreamHandler())
    words, arguments = "%s and %s", ("one",)
    log.warning(words, *arguments)

    assert "not enough arguments" in capsys.readouterr().err


# The command line


class Ledger:
    """A ledger whose every name is hostile."""

    def __init__(self, folder: Path, name: str) -> None:
        self.url = f"sqlite:///{folder / 'ledger.db'}"
        self.engine = open_ledger(self.url)
        writer = LedgerWriter(self.engine)
        self.plan = a_plan_of(name)
        writer.record_plan(self.plan, NOW)
        writer.record_answer(
            Answer(
                plan_id=self.plan.plan_id,
                batch_id="b1",
                run=name,
                decision=Decision.REJECTED,
                answered_by=name,
                answered_at=NOW,
                reason=name,
                comment=name,
            )
        )


HOSTILE_FILE = HOSTILE.replace("\uffff", "")[:90]


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own settings."""
    for variable in ("STEWARD_ADMIN_TOKEN", "STEWARD_LEDGER", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Commands that are given hostile names, or find them."""
    tmp_path = tmp_path_factory.mktemp("hostile")
    ledger = Ledger(tmp_path, HOSTILE)
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump({HOSTILE: {HOSTILE: HOSTILE}, "tc_skew": {HOSTILE: 1}}), encoding="utf-8")
    good = tmp_path / "good.yaml"
    good.write_text(yaml.safe_dump({"brokers": {"draining": [HOSTILE]}}), encoding="utf-8")
    broken = tmp_path / "broken.yaml"
    broken.write_text(f"a: 'b{chr(10)}c: \u202e\x1b[31m", encoding="utf-8")
    named = tmp_path / f"{HOSTILE_FILE}.yaml"
    named.write_text("tc_skew: {}", encoding="utf-8")
    return {
        "an unknown command": [HOSTILE],
        "an unknown option": ["checkup", f"--{HOSTILE}"],
        "an unknown check": ["explain", HOSTILE],
        "an unknown plan": ["show", HOSTILE, "--ledger", ledger.url],
        "a plan": ["show", ledger.plan.plan_id, "--ledger", ledger.url],
        "a halt": ["halt", HOSTILE, "--reason", HOSTILE, "--ledger", ledger.url],
        "a ledger that is not there": ["halt", "--ledger", f"sqlite:///{HOSTILE}"],
        "no ledger at all": ["halt", "--ledger", HOSTILE],
        "a head": ["ledger", "verify", "--noted", HOSTILE, "--ledger", ledger.url],
        "an export to no folder": ["ledger", "export", "--output", f"{HOSTILE}/x", "--ledger", ledger.url],
        "an export": ["ledger", "export", "--ledger", ledger.url],
        "a policy that is not there": ["checkup", "--policy", HOSTILE],
        "a policy's keys": ["policy", "check", str(policy)],
        "a policy's keys on the way": ["checkup", "--snapshot", "x", "--policy", str(policy)],
        "a policy's values": ["policy", "show", "--policy", str(good)],
        "no YAML": ["policy", "check", str(broken)],
        "a policy's file": ["policy", "check", str(named)],
        "a policy's file, in force": ["policy", "show", "--policy", str(named)],
        "a cluster's name": ["policy", "show", HOSTILE],
        "a namespace's name": ["policy", "show", "east", HOSTILE],
        "an address": ["checkup", "--admin-url", HOSTILE],
        "a snapshot": ["checkup", "--snapshot", HOSTILE],
        "a token's file": ["checkup", "--admin-url", "http://127.0.0.1:1", "--token-file", HOSTILE],
        "a place for a page": ["checkup", "--snapshot", "x", "--html", f"{HOSTILE}/x"],
    }


SPOKEN = [
    "an unknown command",
    "an unknown option",
    "an unknown check",
    "an unknown plan",
    "a plan",
    "a halt",
    "a ledger that is not there",
    "no ledger at all",
    "a head",
    "an export to no folder",
    "an export",
    "a policy that is not there",
    "a policy's keys",
    "a policy's keys on the way",
    "a policy's values",
    "no YAML",
    "a policy's file",
    "a policy's file, in force",
    "a cluster's name",
    "a namespace's name",
    "an address",
    "a snapshot",
    "a token's file",
    "a place for a page",
]


@pytest.mark.parametrize("command", SPOKEN)
def test_nothing_that_a_command_says_steers_the_terminal(
    command: str, commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither its report nor its errors, and no name makes a line of its own."""
    code = main.run(commands[command])
    said = capsys.readouterr()

    assert code in {0, 2}
    assert said.out + said.err
    assert unseen(said.out + said.err, lines=True) == set()
    assert [line for line in (said.out + said.err).splitlines() if line.strip(" -#").startswith(FORGED)] == []


def test_the_commands_that_are_tried_are_those_listed(commands: dict[str, list[str]]) -> None:
    """The list above is what pytest names its tests by."""
    assert list(commands) == SPOKEN


def test_a_defect_is_told_without_steering_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library's error may quote anything."""
    monkeypatch.setattr(main, "app", broken)

    assert main.run(["checkup"]) == 2
    said = capsys.readouterr().err
    assert f"ValueError: {READ}" in said
    assert unseen(said, lines=True) == set()


def test_a_policy_that_is_shown_is_one_with_the_same_names(
    commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is spelled out is read back by YAML as what it was."""
    assert main.run(commands["a policy's values"]) == 0

    assert yaml.safe_load(capsys.readouterr().out)["brokers"]["draining"] == [HOSTILE]


def test_an_export_of_the_ledger_means_the_same(
    commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever decodes it gets the very names, so that hashes of rows still fit."""
    assert main.run(commands["an export"]) == 0

    rows = [json.loads(line)["row"] for line in capsys.readouterr().out.splitlines()]
    assert [row["comment"] for row in rows if "comment" in row] == [HOSTILE]


def test_a_ledger_that_was_tampered_with_says_so_in_lines_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key of a row that another hand inserted may be anything."""
    ledger = Ledger(tmp_path, "name")
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(
            "INSERT INTO plans (plan_id, cluster, snapshot_id, created_at, digest, proposal_digest, document)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (HOSTILE, HOSTILE, HOSTILE, "2026-03-01 12:00:00.000000", HOSTILE, HOSTILE, HOSTILE),
        )
        connection.exec_driver_sql(
            "INSERT INTO batches (plan_id, batch_id, position, kind, title, steps) VALUES (?, ?, 0, ?, ?, 1)",
            (HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        )

    assert main.run(["ledger", "verify", "--ledger", ledger.url]) == 1
    said = capsys.readouterr().out
    assert unseen(said, lines=True) == set()
    assert [line for line in said.splitlines() if not re.match(r"TAMPERED|head:|- ", line)] == []


def test_an_error_keeps_what_was_said_for_whoever_handles_it() -> None:
    """Only what a person reads is spelled out: code that looks at a reason gets the broker's own."""
    error: StewardError = AdminError("GET", "/admin", "b:1", "a\nb")

    assert isinstance(error, AdminError)
    assert (error.reason, str(error)) == ("a\nb", r"GET /admin at b:1: a\nb")


def test_a_moment_is_not_taken_for_hostile() -> None:
    """What Steward itself says is shown as it is, letter by letter."""
    told = f"{datetime(2026, 3, 1, 12, tzinfo=UTC):%Y-%m-%d %H:%M} UTC: 50 % of “x” → 1,024 KiB …"
    assert str(StewardError(told)) == told
