"""``steward halt`` and ``steward questions``: a way to stop everything, and what is silent."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import Engine, delete, func, select, text

from pulsar_steward.cli import known_names
from pulsar_steward.errors import Halted
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.halts import halt_of
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold
from pulsar_steward.policy.never_asked import never_asked_entry
from tests.builders import CLUSTER, NAMED, NOW, a_batch, a_plan
from tests.cases import row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import approved, record_move

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward

BUNDLE = "0x00000000_0x10000000"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An empty ledger, named in the environment, and Alice at the keyboard."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    monkeypatch.setenv("STEWARD_LEDGER", url)
    monkeypatch.setenv("LOGNAME", "alice")
    yield engine
    engine.dispose()


def test_a_halted_cluster_is_not_changed_until_it_is_resumed(steward: Steward, engine: Engine, golden: Golden) -> None:
    """No call is recorded for a halted cluster until it is resumed; the refusal says who halted it and why."""
    halted = steward("halt", CLUSTER, "--reason", "brokers are\nbeing upgraded")
    with pytest.raises(Halted, match=r"by alice at .* \(steward halt\) at .*: brokers"):
        record_move(engine, BUNDLE, datetime.now(UTC))
    resumed = steward("resume", CLUSTER, "--reason", "done")
    record_move(engine, "0x10000000_0x20000000", datetime.now(UTC))

    assert (halted.code, resumed.code, resumed.err) == (0, 0, "")
    assert ": brokers are\\nbeing upgraded\n" in halted.out
    told = re.sub(r"by alice at .* UTC", "by alice at PLACE AND TIME UTC", halted.out)
    golden(re.sub(r"sqlite:///.*ledger\.db", "sqlite:///LEDGER", told))
    golden(resumed.out)


def test_other_names_of_a_halted_cluster_are_named(steward: Steward, engine: Engine) -> None:
    """Who halts a cluster reads which other names of it are halted as well."""
    for name in (CLUSTER, "west"):
        LedgerWriter(engine).record_plan(a_plan(cluster=name), NOW)
    halted = steward("halt", "west", "--reason", "tests")
    assert "east is another name of the same Pulsar cluster: it is halted as well." in halted.out
    assert halt_of(engine, NAMED) is not None
    assert "still halted: cluster west" in steward("resume", CLUSTER).out


def test_what_is_halted_is_listed(steward: Steward, engine: Engine) -> None:
    """The list of halts begins with that of all clusters, and has none that was resumed."""
    empty = steward("halt")
    for arguments in (["west"], ["east"], ["--all"], ["north"]):
        assert steward("halt", *arguments, "--reason", "tests").code == 0
    assert steward("resume", "north").code == 0

    listed = steward("halt")

    assert (empty.code, empty.out) == (0, "nothing is halted by this ledger\n")
    assert listed.code == 0
    starts = [line.partition(" was halted by alice at ")[0] for line in listed.out.splitlines()]
    assert starts == ["every cluster", "cluster east", "cluster west"]


@row_by_row(
    "halts, resumed, said",
    ([["east"]], ["east"], ["the halt of cluster east"]),
    ([["east"], ["west"]], ["east"], ["the halt of cluster east", "still halted: cluster west"]),
    ([["east"], ["--all"]], ["east"], ["the halt of cluster east", "still halted: every cluster"]),
    ([["--all"]], ["east"], ["there is no halt of cluster east", "still halted: every cluster"]),
    ([["east"], ["--all"]], ["--all"], ["the halt of every cluster", "still halted: cluster east"]),
    ([["*"]], ["--all"], ["the halt of every cluster"]),
)
def test_an_end_says_what_still_holds(
    steward: Steward, engine: Engine, halts: list[list[str]], resumed: list[str], said: list[str]
) -> None:
    """Halts end one by one, and those that still stop the cluster are listed: of names that nobody has seen, all."""
    for arguments in halts:
        assert steward("halt", *arguments, "--reason", "tests").code == 0

    ended = steward("resume", *resumed)

    assert ended.code == 0
    lines = ended.out.splitlines()
    assert len(lines) == len(said)
    assert [line[: len(start)] for line, start in zip(lines, said, strict=True)] == said
    assert all("` ends it" in line for line in lines[1:])


def test_before_anything_is_known_every_name_can_be_halted(steward: Steward, engine: Engine) -> None:
    """A cluster is halted where nothing is known yet, with a warning that its name could not be compared."""
    ended = steward("halt", CLUSTER, "--reason", "tests")

    assert (ended.code, "No cluster is known here yet" in ended.err) == (0, True)
    assert halt_of(engine, NAMED) is not None


def observed(folder: Path) -> None:
    """Has snapshots of the cluster north."""
    (folder / "snapshots" / "cluster=north").mkdir(parents=True)


@pytest.mark.parametrize("name", ["east", "north", "west"])
def test_a_cluster_that_anything_here_knows_is_halted_without_a_question(
    steward: Steward, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    record_move(engine, BUNDLE, NOW)
    observed(tmp_path)
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    monkeypatch.setenv("STEWARD_CLUSTER", "west")

    ended = steward("halt", name, "--reason", "tests")

    assert (ended.code, "is known here" in ended.err) == (0, False)


def test_what_cannot_be_looked_at_refuses_no_halt(
    steward: Steward, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A halt is kept although neither the plans nor the folder of snapshots can be read."""
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE plans RENAME TO lost"))
    monkeypatch.setenv("STEWARD_SNAPSHOTS", "nowhere://snapshots")

    ended = steward("halt", CLUSTER, "--reason", "tests")

    assert (ended.code, halt_of(engine, NAMED) is not None) == (0, True), ended.err


def test_a_name_that_only_airflow_knows_is_halted(
    steward: Steward, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is looked for among the connections of an Airflow that is set up here, unless it looks misspelt."""
    record_move(engine, BUNDLE, NOW)
    asked: list[tuple[str, ...]] = []

    def told(_module: str, question: HaltsAsked, _kind: object, _seconds: float) -> HaltsTold:
        asked.append(question.names)
        return HaltsTold(reasons={}, understood=True, connected=tuple({"west", "EAST"} & set(question.names)))

    monkeypatch.setattr(known_names, "airflow_is_set_up", lambda: True)
    monkeypatch.setattr(known_names, "ask_airflow", told)
    codes = {name: steward("halt", name, "--reason", "tests").code for name in ("west", "wset", "EAST")}

    assert codes == {"west": 0, "wset": 2, "EAST": 2}
    assert asked == [("west",), ("wset",)]


@pytest.mark.parametrize("known", [True, False])
def test_a_name_that_no_plan_has_is_halted_and_doubted(steward: Steward, engine: Engine, known: bool) -> None:
    """A name that no plan says the cluster of is halted as well, and every cluster with it, which is said."""
    if known:
        record_move(engine, BUNDLE, NOW)

    ended = steward("halt", CLUSTER, "--reason", "tests")

    assert ended.code == 0
    assert halt_of(engine, NAMED) is not None
    assert ("until one does, every cluster is halted" in ended.err) is not known


@row_by_row(
    "arguments, words",
    (["halt", "east"], "say why by --reason"),
    (["halt", "east", "--reason", " "], "say why by --reason"),
    (["halt", "--all"], "say why by --reason"),
    (["halt", "--reason", "tests"], "which cluster?"),
    (["halt", "east", "--all", "--reason", "tests"], "either the cluster east or --all"),
    (["halt", " ", "--reason", "tests"], "the cluster's name is empty"),
    (["resume"], "which cluster?"),
    (["resume", "east", "--all"], "either the cluster east or --all"),
    (["resume", " "], "the cluster's name is empty"),
)
def test_what_is_not_clear_is_not_kept(steward: Steward, engine: Engine, arguments: list[str], words: str) -> None:
    """An incomplete or contradictory command ends with exit code 2, and no halt is recorded."""
    ended = steward(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(tables.HALTS)).scalar() == 0


def test_a_halt_that_cannot_be_kept_says_so(steward: Steward, engine: Engine) -> None:
    """A halt that the ledger cannot record ends with exit code 2 and an error that says so."""
    with engine.begin() as connection:
        connection.execute(delete(tables.HEAD))

    ended = steward("halt", "east", "--reason", "tests")

    assert (ended.code, ended.out) == (2, "")
    assert "error: this halt was not kept" in ended.err


def test_a_user_without_a_name_can_halt_too(steward: Steward, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a name, as in a container, can halt a cluster and is named by number."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000)

    assert "was halted by user 4000000 at " in steward("halt", "east", "--reason", "tests").out


def test_a_name_from_the_environment_is_cut_to_what_the_ledger_keeps(
    steward: Steward, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "a" * 300)

    assert steward("halt", "east", "--reason", "tests").code == 0
    held = halt_of(engine, NAMED)
    assert held is not None
    assert held.said_by == "a" * 200


PLAN = a_plan(a_batch(title="a time to live \u202e", kind="retention"))
ENTRY = never_asked_entry("acme/x", ["retention"])


@pytest.fixture
def questions_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A ledger with a plan, named in the environment, and Bob at the keyboard."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    questions_engine = ledger_at(url)
    monkeypatch.setenv("STEWARD_LEDGER", url)
    monkeypatch.setenv("LOGNAME", "bob")
    LedgerWriter(questions_engine).record_plan(PLAN, datetime.now(UTC))
    yield questions_engine
    questions_engine.dispose()


def record_no(questions_engine: Engine, decision: Decision) -> int:
    """A no of Alice, an hour ago; the number of the answer."""
    at = datetime.now(UTC) - timedelta(hours=1)
    usual = msgspec.structs.replace(approved(PLAN, at), decision=decision, step_ids=(), digest=None, expires_at=None)
    snoozed = decision is Decision.SNOOZED
    return LedgerWriter(questions_engine).record_answer(
        msgspec.structs.replace(
            usual,
            silent_until=at + timedelta(days=2) if snoozed else None,
            until_worse=True if snoozed else None,
            policy_entry=ENTRY if decision is Decision.NEVER else None,
        )
    )


@row_by_row(
    "decision, words",
    (Decision.SNOOZED, "or until it gets worse"),
    (Decision.NEVER, "until it is taken back"),
    (Decision.REJECTED, "rejected by alice at"),
)
def test_what_is_silent_is_listed_until_it_is_taken_back(
    steward: Steward, questions_engine: Engine, decision: Decision, words: str
) -> None:
    """A silent question is listed with who silenced it and until when; its end is recorded with a reason."""
    number = record_no(questions_engine, decision)
    listed = steward("questions", "silent", CLUSTER)
    assert (listed.code, listed.err) == (0, "")
    for each in (f"answer {number}: {CLUSTER}: a time to live \\u202e", "by alice at", '"after lunch"', words):
        assert each in listed.out
    assert all(line in listed.out for line in ENTRY.splitlines()) is (decision is Decision.NEVER)

    ended = steward("questions", "ask-again", str(number), "--reason", "the fair\nis over")
    assert (ended.code, ended.err) == (0, "")
    assert steward("questions", "silent").out == "nothing is silent by this ledger\n"
    with transaction(questions_engine) as connection:
        (row,) = connection.execute(select(tables.SILENCE_ENDS)).mappings()
    assert (row["answer_id"], row["reason"]) == (number, "the fair\nis over")
    assert row["said_by"].startswith("bob at ")
    assert "taken back before" in steward("questions", "ask-again", str(number), "--reason", "again").out


def test_of_one_cluster(steward: Steward, questions_engine: Engine) -> None:
    """The silent questions of other clusters are not listed if a cluster is named."""
    record_no(questions_engine, Decision.SNOOZED)
    assert steward("questions", "silent", "elsewhere").out == "nothing is silent in cluster elsewhere by this ledger\n"


def test_nothing_is_taken_back_without_a_reason_or_by_mistake(steward: Steward, questions_engine: Engine) -> None:
    """The command needs a reason, and refuses the number of an approval and a number that does not exist."""
    number = record_no(questions_engine, Decision.SNOOZED)
    silent = steward("questions", "ask-again", str(number))
    assert (silent.code, "--reason" in silent.err) == (2, True)
    other = LedgerWriter(questions_engine).record_answer(
        msgspec.structs.replace(approved(PLAN, datetime.now(UTC)), run="x/y/0")
    )
    for each in (other, other + 1):
        ended = steward("questions", "ask-again", str(each), "--reason", "x")
        assert (ended.code, "silences nothing" in ended.err) == (2, True)
