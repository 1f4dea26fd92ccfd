"""What ``steward doctor`` says of names: those in policies that stand for nothing, and what is halted by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.cli.doctor import names
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold
from pulsar_steward.orchestration.airflow_answers import halts_told
from tests.builders import NOW
from tests.cases import row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import meta, skewed, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Ended, Steward


NAMESPACES = {"east": "shop/orders", "west": "shop/bills"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``STEWARD_HOME`` with two clusters that were observed, of which the ledger knows east."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    for cluster, namespace in NAMESPACES.items():
        rows = [{"namespace": namespace, "bundles": 4, "boundaries": []}]
        place = tmp_path / "snapshots" / f"cluster={cluster}" / "taken_at=20260301T120000Z"
        written(place, **{**skewed(), "snapshot": meta(cluster=cluster), "namespaces": rows})
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    return tmp_path


def lines(ended: Ended, subject: str) -> list[tuple[str, str]]:
    """State and words of the lines with a subject."""
    return [(line["state"], line["words"]) for line in json.loads(ended.out)["lines"] if line["subject"] == subject]


def protecting(*protected: str) -> str:
    """A policy that protects these namespaces."""
    return f"apply: {{protected_namespaces: [{', '.join(protected)}]}}\n"


@row_by_row(
    "text, state, words",
    (protecting("shop/orders", "shop/bills"), "ok", "each stands for something that was seen in east, west"),
    (protecting("shop/ordres", "shop/bills"), "problem", "no namespace in the last snapshot is called shop/ordres"),
    ("brokers: {draining: ['broker-7:8080']}\n", "problem", "brokers.draining: no broker in the last snapshot"),
    (f"clusters:\n  east:\n    {protecting('shop/orders')}", "ok", "each stands for something"),
    (f"clusters:\n  east:\n    {protecting('shop/bills')}", "problem", "is called shop/bills"),
    (
        "clusters: {esat: {apply: {most_clients_per_step: 5}}}",
        "problem",
        "clusters: no cluster that is known is called esat",
    ),
    ("approval: {assigned_users: [alice, bob]}", "ok", "nobody answered yet by these ids, which have to be"),
)
def test_a_name_that_stands_for_nothing_is_a_problem(
    steward: Steward, home: Path, text: str, state: str, words: str
) -> None:
    """A name of a shared policy has to stand for something in one of the clusters for which it holds."""
    (home / "policy.yaml").write_text(text)

    ended = steward("doctor", "--json")

    (line,) = lines(ended, "names in policy.yaml")
    assert (line[0], words in line[1]) == (state, True), line
    assert ended.code == (1 if state == "problem" else 0)


def test_a_policy_of_a_cluster_that_nobody_knows_is_a_problem(steward: Steward, home: Path) -> None:
    """A policy file is named after a cluster, so that a misspelt one would hold nowhere."""
    (home / "policies").mkdir(mode=0o700)
    for name in ("east", "EATS"):
        (home / "policies" / f"{name}.yaml").write_text(protecting("shop/orders"))

    ended = steward("doctor", "--json")

    assert lines(ended, "names in EATS.yaml") == [
        ("problem", "it is the policy of EATS, and no cluster of this name is known")
    ]
    assert [state for state, _ in lines(ended, "names in east.yaml")] == ["ok"]


def test_what_the_ledger_halts_is_listed(steward: Steward, home: Path) -> None:
    """A halt in force is told, and one of a name that no cluster has is a problem."""
    engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
    for name in (EVERY_CLUSTER, "east", "lokal"):
        say(engine, Halt(cluster=name, at=NOW, halted=True, said_by="bob", reason="tests"))
    engine.dispose()

    found = lines(steward("doctor", "--json"), "halt")

    assert [state for state, _ in found] == ["ok", "ok", "problem"]
    assert "cluster lokal was halted by bob" in found[2][1]


@row_by_row(
    "answer, state, words",
    (HaltsTold(reasons={}, understood=True, connected=()), "ok", "it does not halt east, west"),
    (HaltsTold(reasons={"east": "halted"}, understood=True, connected=()), "ok", "halted"),
    (HaltsTold(reasons={"east": "odd", "west": "odd"}, understood=False, connected=()), "problem", "odd"),
    (None, "unknown", "Airflow does not tell what it says"),
)
def test_what_the_variable_halts_is_said(
    steward: Steward, monkeypatch: pytest.MonkeyPatch, answer: HaltsTold | None, state: str, words: str
) -> None:
    """The Airflow that is set up here is asked what its halt variable does to each cluster that is known."""
    asked: list[HaltsAsked] = []

    def answering(_subject: str, question: HaltsAsked, _kind: object) -> HaltsTold | None:
        asked.append(question)
        return answer

    monkeypatch.setattr(names, "airflow_is_set_up", lambda: True)
    monkeypatch.setattr(names, "ask_airflow", answering)

    assert lines(steward("doctor", "--json"), "variable steward_halt") == [(state, words)]
    assert asked == [HaltsAsked(clusters=("east", "west"))]


@row_by_row(
    "value, halted, understood",
    ("east", {"east"}, True),
    ("all", {"east", "west"}, False),
    ("", set(), True),
    ("south", set(), True),
)
def test_airflow_tells_what_its_variable_halts(
    monkeypatch: pytest.MonkeyPatch, value: str, halted: set[str], understood: bool
) -> None:
    """The answer has a reason for each cluster that is halted, and which names a connection has."""
    monkeypatch.setenv("AIRFLOW_VAR_STEWARD_HALT", value)
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_ADMIN_SOUTH", "http://127.0.0.1:1")

    found = halts_told(HaltsAsked(clusters=("east", "west"), names=("south", "north", "no name")))

    assert (set(found.reasons), found.understood, found.connected) == (halted, understood, ("south",))
