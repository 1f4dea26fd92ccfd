"""Commands about a policy, and the one that shows a plan."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import EndReason, Outcome, Proof, StepOutcome
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step, an_intended_call
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import RUN, approved

if TYPE_CHECKING:
    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward


EXAMPLE = Path(__file__).parents[3] / "docs" / "policy.example.yaml"


def values(text: str) -> Policy:
    """The policy that was printed."""
    return Policy.model_validate(yaml.safe_load(text))


def line_of(text: str, section: str, key: str) -> str:
    """Printed line of one key."""
    return next(line for line in text.partition(f"\n{section}:\n")[2].splitlines() if line.startswith(f"  {key}:"))


@row_by_row(
    "text, words",
    ("tc_skew: {cooldown_minutes: 5}\nbrokers: {draining: ['b:1']}\n", "it sets 2 keys, all others keep"),
    (
        "tc_skew: {cooldown_minutes: 5}\ntenants: {a: {ack_holes: {warning_percent: 5}}, b: {}}\n",
        "it sets 1 key, and 1 key for 1 tenant, all others keep",
    ),
    (EXAMPLE.read_text(encoding="utf-8"), "4 keys, and 2 keys for 1 cluster, 2 keys for 1 tenant, 4 keys for 2 n"),
)
def test_a_policy_that_holds_up(steward: Steward, tmp_path: Path, text: str, words: str) -> None:
    """The check of a valid policy prints its digest and how many keys it sets, in all and for which kinds of names."""
    policy = tmp_path / "p.yaml"
    policy.write_text(text, encoding="utf-8")

    ended = steward("policy", "check", policy)

    assert ended.code == 0
    assert words in ended.out
    assert load_policy(policy).digest in ended.out


@row_by_row(
    "text, words",
    ("tc_skew: {cooldown_minuets: 5}", "p.yaml:1:11: tc_skew.cooldown_minuets: no such key; did you mean cooldown_m"),
    ("tc_skew: {cooldown_minutes: -1}", "p.yaml:1:29: tc_skew.cooldown_minutes"),
    ("a: [", "p.yaml:1:5: cannot be read as YAML"),
    (None, "no such file"),
)
@pytest.mark.parametrize("command", [["check"], ["show", "--policy"]])
def test_a_policy_that_does_not(
    steward: Steward, tmp_path: Path, command: list[str], text: str | None, words: str
) -> None:
    """An invalid or missing policy ends the command with exit code 2 and one line that names the place."""
    policy = tmp_path / "p.yaml"
    if text is not None:
        policy.write_text(text, encoding="utf-8")

    ended = steward("policy", *command, policy)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_every_trouble_has_a_line(steward: Steward, tmp_path: Path) -> None:
    """Each error in a policy is printed with file, line and column, which editors can open."""
    policy = tmp_path / "p.yaml"
    policy.write_text("admn: {}\ntenants:\n  acme:\n    apply: {}\n", encoding="utf-8")

    ended = steward("policy", "check", policy)

    assert [line.partition(": ")[0] for line in ended.err.splitlines()] == [f"{policy}:1:1", f"{policy}:4:5"]


@pytest.mark.parametrize("describe", [[], ["--describe"]])
def test_what_is_in_force_can_be_used_as_a_policy(steward: Steward, tmp_path: Path, describe: list[str]) -> None:
    """The printed policy reads back as the same policy, and each value from the file is marked as such."""
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "tc_skew: {cooldown_minutes: 5}\nevents: {topic: null}\nbrokers: {draining: ['b:1']}\n"
        "notify: {recipients: {ops: {connection: steward_notify_ops, kind: webhook}}}\n"
    )

    ended = steward("policy", "show", "--policy", policy, *describe)

    assert ended.code == 0
    assert values(ended.out) == load_policy(policy)
    assert "  cooldown_minutes: 5  # file; default 30\n" in ended.out
    assert '  draining: ["b:1"]  # file; default []\n' in ended.out
    assert ended.out.count("# file; ") == 4
    assert ("# rest of a bundle after a move" in ended.out) is bool(describe)


def test_the_defaults_are_shown_where_there_is_no_file(steward: Steward) -> None:
    """All keys of the default policy are printed if there is no file, but none for single names."""
    ended = steward("policy", "show")

    assert yaml.safe_load(ended.out) == Policy().model_dump(mode="json", exclude={"clusters", "tenants", "namespaces"})
    assert "# file" not in ended.out


def test_overrides_are_shown_where_nobody_is_named(steward: Steward) -> None:
    """The printed policy has all overrides if no cluster is named; otherwise those of the cluster are applied."""
    assert values(steward("policy", "show", "--policy", EXAMPLE).out) == load_policy(EXAMPLE)
    assert values(steward("policy", "show", "east", "--policy", EXAMPLE).out) == load_policy(EXAMPLE).for_cluster(
        "east"
    )


def test_names_that_yaml_would_misread_are_quoted(steward: Steward, tmp_path: Path) -> None:
    """Names that YAML would read as other values are quoted, so that the printed policy reads back the same."""
    policy = tmp_path / "p.yaml"
    policy.write_text("tenants: {'7': &a {ack_holes: {warning_percent: 7}}, 'on': *a, 'a:b': *a, plain: *a}\n")

    assert values(steward("policy", "show", "--policy", policy).out) == load_policy(policy)


ALARMS, FANOUT = "iot/alarms", ("consumer_fanout", "warning_consumers")


@cases(
    "cluster, namespace, place, line",
    (
        "of the namespace, over its tenant's",
        "east",
        ALARMS,
        ("subscription_stalled", "minimum_due_messages"),
        "100  # namespace iot/alarms; tenant iot 100000, default 1000",
    ),
    ("of the tenant", "east", ALARMS, FANOUT, "6000  # tenant iot; cluster east 4000, default 2000"),
    ("of the cluster", "east", "a/b", FANOUT, "4000  # cluster east; default 2000"),
    ("of nobody", "west", "a/b", FANOUT, "2000  # default"),
    (
        "of the namespace, over the file's",
        "west",
        "payments/live",
        ("backlog_near_quota", "warning_percent"),
        "50  # namespace payments/live; file 75, default 80",
    ),
    ("of the file", "east", "payments/live", ("tc_skew", "warning_spread_coordinators"), "4  # file; default 3"),
)
def test_each_value_says_where_it_comes_from(
    steward: Steward, cluster: str, namespace: str, place: tuple[str, str], line: str
) -> None:
    """Each value is printed with the nearest place that sets it and with the values that it replaces."""
    ended = steward("policy", "show", cluster, namespace, "--policy", EXAMPLE)
    assert ended.out.startswith(f"# in force for cluster {cluster}, namespace {namespace}\n# file: {EXAMPLE}\n")
    assert line_of(ended.out, *place) == f"  {place[1]}: {line}"
    assert values(ended.out) == load_policy(EXAMPLE).for_cluster(cluster).for_namespace(namespace)


@row_by_row(
    "files, minutes, words",
    (["policies/east.yaml"], 1, "# file: "),
    (["policies/east.yaml", "policy.yaml"], 1, "# file: "),
    (["policy.yaml", "policies/west.yaml"], 2, "# file: "),
    (["policies/west.yaml"], 30, "# no file for east in "),
)
def test_a_cluster_has_the_file_that_scheduled_runs_use(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], minutes: int, words: str
) -> None:
    """A cluster's policy comes from its own file, or else from the file for all clusters."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    (tmp_path / "policies").mkdir()
    for file in files:
        (tmp_path / file).write_text(f"tc_skew: {{cooldown_minutes: {2 if file == 'policy.yaml' else 1}}}\n")

    ended = steward("policy", "show", "east")

    assert f"\n{words}{tmp_path}" in ended.out
    assert values(ended.out).tc_skew.cooldown_minutes == minutes


@row_by_row(
    "arguments, words",
    (["east", "orders"], "give it as tenant/namespace"),
    ([EXAMPLE], "name a policy file by --policy"),
)
def test_arguments_that_cannot_be_names(steward: Steward, arguments: list[str], words: str) -> None:
    """Arguments that cannot be names end the command with exit code 2 and one line with the remedy."""
    ended = steward("policy", "show", *arguments)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


PLAN = a_plan(a_batch(a_step()), notes=("a note",))
NEWER = a_plan(a_batch(a_step(why="else")))
COMMON: dict[str, Any] = {"plan_id": PLAN.plan_id, "batch_id": "b1", "run": RUN, "at": NOW}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with an answered, carried out, proved and superseded plan, and the newer one."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    writer.record_plan(PLAN, NOW)
    writer.record_request(PLAN, "b1", RUN, NOW, asked_digest=ASKED_DIGEST, policy=Policy())
    writer.record_answer(approved(PLAN, NOW))
    outcome = StepOutcome(**COMMON, step_id="b1.s01", intent_id=None, outcome=Outcome.DRIFTED, reason="moved", proof={})
    writer.record_outcome(outcome)
    writer.record_proof(Proof(**COMMON, proved=False, reason="still there", shown={}))
    writer.record_plan(NEWER, NOW, supersede=[PLAN.plan_id])
    engine.dispose()
    return url


def without_digests(text: str) -> str:
    """Printed lines, whatever else a plan may hold one day."""
    for plan, name in ((PLAN, "PLAN"), (NEWER, "NEWER")):
        text = text.replace(plan.plan_id, name).replace(plan.digest, f"DIGEST OF {name}")
    return text


def test_a_plan_is_shown_with_what_became_of_it(steward: Steward, url: str, golden: Golden) -> None:
    """A plan is shown with its steps, question, answer and comment, outcome, proof and successor."""
    ended = steward("show", PLAN.plan_id, "--ledger", url)

    assert ended.code == 0
    golden(without_digests(ended.out))


def test_a_plan_that_nobody_answered_says_so(
    steward: Steward, url: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """A plan without an answer is shown as such, and the ledger may be named in the environment."""
    monkeypatch.setenv("STEWARD_LEDGER", url)

    ended = steward("show", NEWER.plan_id)

    assert ended.code == 0
    golden(without_digests(ended.out))


def test_a_question_that_ended_is_shown_with_its_reason(steward: Steward, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'questions.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    asked = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="tc_balance")
    writer.record_plan(PLAN, NOW, questions=QuestionChanges(asked=(asked,)))
    later = msgspec.structs.replace(NEWER, taken_at=NOW + timedelta(hours=1))
    writer.record_confirmations(later, [1], NOW)
    end = Ending(question_id=1, reason=EndReason.NO_LONGER_PROPOSED, words="a later observation no longer proposes it")
    writer.record_plan(NEWER, NOW, questions=QuestionChanges(ended=(end,)))
    engine.dispose()

    read = " ".join(steward("show", PLAN.plan_id, "--ledger", url).out.split())

    assert "proposed the same again, at last by the snapshot of 2026-03-01 13:00:00" in read
    assert "the question ended 2026-03-01 12:00:00" in read
    assert "a later observation no longer proposes it" in read


def test_a_plan_that_is_not_there_is_told_with_those_that_are(steward: Steward, url: str) -> None:
    """An unknown plan is an error that suggests a similar id, or another ledger."""
    ended = steward("show", PLAN.plan_id[:-3], "--ledger", url)

    assert ended.code == 2
    assert f"did you mean {PLAN.plan_id}" in ended.err
    assert "another ledger" in steward("show", "nowhere-20260101T000000Z-0123", "--ledger", url).err


def test_a_batch_under_way_is_shown_as_such(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    writer.record_plan(PLAN, NOW)
    writer.record_request(PLAN, "b1", RUN, NOW, asked_digest=ASKED_DIGEST, policy=Policy())
    answer_id = writer.record_answer(approved(PLAN, NOW))
    lease = writer.take_lease(PLAN.named_cluster, RUN, 60, NOW)
    step = PLAN.batch("b1").steps[0]
    intended = an_intended_call(PLAN, step, approved(PLAN, NOW), answer_id)
    writer.record_intent(intended, lease, NOW)
    engine.dispose()

    golden(without_digests(steward("show", PLAN.plan_id, "--ledger", url).out))
