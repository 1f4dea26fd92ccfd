"""What doctor says of a token's rights, of what brokers are asked, and of this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, ClusterSpec, Fault, Simulator, running_simulator
from pulsar_steward.cli.doctor.asking import MISSED, asking_lines, by_airflow
from pulsar_steward.cli.doctor.line import LineState
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.questions import UNASKED_AFTER
from pulsar_steward.ledger.write import LedgerWriter
from tests.builders import a_plan
from tests.cases import row_by_row
from tests.forward_proxy import saying
from tests.ledgers import ledger_at
from tests.unit.cli.test_doctor import a_token, address_line, home, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Ended, Steward


__all__ = ["home"]

LOOKING, CHANGING = a_token(sub="watcher"), a_token(sub="admin")
GUARDED = ClusterSpec(brokers=1, configuration={"authenticationEnabled": "true", "authorizationEnabled": "true"})
CHANGE = "rights to change"


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """A broker that wants to know who is asking."""
    with running_simulator(GUARDED, token=CHANGING, looking_token=LOOKING) as simulator:
        yield simulator


@pytest.fixture
def asked(steward: Steward, cluster: Simulator, tmp_path: Path) -> Callable[..., Ended]:
    """Lines about the cluster, looked at by a token, and changed as the options say."""

    def ended(token: str, *options: object, change: str | None = None) -> Ended:
        (tmp_path / "looking").write_text(token, encoding="utf-8")
        (tmp_path / "changing").write_text(change or "", encoding="utf-8")
        given = ["--change-token-file", tmp_path / "changing"] if change else []
        known = ["--admin-url", cluster.admin_urls[0], "--token-file", tmp_path / "looking"]
        said = steward("doctor", *known, *given, *options, "--json")
        assert not any(secret in said.out + said.err for secret in (LOOKING, CHANGING, token, change or token))
        assert {record.method for record in cluster.requests.all()} == {"GET"}
        return said

    return ended


def test_one_for_looking_and_one_for_changing(asked: Callable[..., Ended]) -> None:
    """The tokens for looking and for changing are each named by their role, and both are fine."""
    told = lines(ended := asked(LOOKING, change=CHANGING))
    assert (ended.code, told[CHANGE]["state"]) == (0, "ok")
    assert told["rights"]["words"].startswith("by a token for 'watcher', with a superuser's rights")
    assert told[CHANGE]["words"].startswith("by a token for 'admin', with a superuser's rights")


def test_one_for_both_is_said_with_the_advice(asked: Callable[..., Ended]) -> None:
    """One token for looking and for changing is no problem, and the line tells how to have two."""
    line = lines(ended := asked(CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (0, "ok")
    assert "`pulsar_change_<cluster>`" in line["words"]
    assert "docs/permissions.md" in line["words"]


def test_the_same_one_twice_parts_nothing(asked: Callable[..., Ended]) -> None:
    """The same credentials for looking and for changing are a problem, as they do not separate the two."""
    line = lines(ended := asked(CHANGING, change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "give looking credentials of its own" in line["remedy"]


def test_a_wrong_one_for_changing(asked: Callable[..., Ended]) -> None:
    """A wrong token for changing is a problem whose remedy names the option, and the line on looking is fine."""
    told = lines(ended := asked(LOOKING, change=a_token(sub="nobody")))
    assert (ended.code, told[CHANGE]["state"], told["rights"]["state"]) == (1, "problem", "ok")
    assert "--change-token-file" in told[CHANGE]["remedy"]


def test_a_role_that_may_change_no_bundle(asked: Callable[..., Ended], cluster: Simulator) -> None:
    """The lines name what a looking role may not read, and say that approved changes need other credentials."""
    refused = Answer(403, "This operation requires super-user access")
    cluster.faults.add(Fault(refused, path="broker-stats|configuration/runtime|isolationPolicies", times=None))
    told = lines(ended := asked(LOOKING))
    assert (ended.code, told["rights"]["state"]) == (1, "problem")
    assert "may not be read: a broker's configuration, a broker's load;" in told["rights"]["words"]
    assert "docs/permissions.md" in told["rights"]["remedy"]
    assert "approved changes need others, in `pulsar_change_<cluster>`" in told[CHANGE]["words"]


def test_another_cluster_to_change(asked: Callable[..., Ended]) -> None:
    """Addresses that lead to two clusters of the same name for looking and for changing are a problem."""
    with running_simulator(GUARDED, token=CHANGING) as other:
        line = lines(ended := asked(LOOKING, "--change-admin-url", other.admin_urls[0], change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "the addresses lead to two clusters" in line["words"]
    assert "--change-admin-url" in line["remedy"]


def test_nobody_there_to_change(asked: Callable[..., Ended]) -> None:
    """The rights to change are unknown, with exit code 2, if the address for changes does not answer."""
    line = lines(ended := asked(LOOKING, "--change-admin-url", "http://127.0.0.1:1", change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (2, "unknown")
    assert "that the broker runs" in line["remedy"]


def test_a_port_where_nobody_speaks_http(steward: Steward) -> None:
    with saying(b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\x0d\x6a\x00") as place:
        line = address_line(steward("doctor", "--admin-url", f"http://{place}", "--json"))
    assert "is that the admin port of a Pulsar broker (8080 or 8443 by default)" in line["remedy"]


def test_a_proxy_where_nobody_is(steward: Steward) -> None:
    """The line on the address says that the proxy cannot be reached, and the remedy is to check the proxy."""
    options = ["--admin-url", "https://b-1:8443", "--proxy", "http://127.0.0.1:1", "--json"]
    line = address_line(steward("doctor", *options))
    assert "the forward proxy cannot be reached: check `proxy`" in line["words"]
    assert "check --proxy" in line["remedy"]


def test_folders_for_secrets(steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line on secrets names the folders for them, and a folder that everybody may write to is a problem."""
    folder = tmp_path / "secrets"
    monkeypatch.setenv("STEWARD_SECRETS_FOLDERS", f"{folder}:/nowhere")
    line = lines(steward("doctor", "--json"))["secrets"]
    assert (line["state"], f"{folder}, /nowhere only; there: none" in line["words"]) == ("ok", True)
    folder.mkdir()
    assert f"there: {folder} " in lines(steward("doctor", "--json"))["secrets"]["words"]
    folder.chmod(0o777)
    line = lines(ended := steward("doctor", "--json"))["secrets"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert f"chmod o-w {folder}" in line["remedy"]


RUNS = dict.fromkeys(MISSED, False)
REMEDIATE = "pulsar_remediate"


def a_ledger(folder: Path, age: timedelta) -> str:
    """A ledger with a question that nobody was asked for so long."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    engine = ledger_at(url)
    question = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="goal")
    at = datetime.now(UTC) - age
    LedgerWriter(engine).record_plan(a_plan(), at, questions=QuestionChanges(asked=(question,)))
    engine.dispose()
    return url


def test_dags_that_run_are_fine(tmp_path: Path) -> None:
    """One line says that no DAG is paused; where Airflow or the ledger cannot be read there is none."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    (line,) = asking_lines(url, lambda: RUNS)
    assert (line.subject, line.state) == ("DAGs", LineState.OK)
    assert list(asking_lines(url, lambda: None)) == []


@pytest.mark.parametrize("dag", MISSED)
def test_a_dag_that_is_paused_or_missing_is_a_problem(tmp_path: Path, dag: str) -> None:
    """The line names the DAG, what does not happen without it, and the command that mends it."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    (paused,) = asking_lines(url, lambda: RUNS | {dag: True})
    assert (paused.state, paused.words) == (LineState.PROBLEM, f"{dag} is paused: {MISSED[dag]}")
    assert paused.remedy == f"`airflow dags unpause {dag}`"
    (missing,) = asking_lines(url, lambda: {each: False for each in MISSED if each != dag})
    assert (missing.state, missing.words) == (LineState.PROBLEM, f"Airflow's database does not have {dag}")
    assert "steward airflow bundle" in missing.remedy


@row_by_row(
    "paused, age, said",
    (True, timedelta(), f"{REMEDIATE} is paused"),
    (False, timedelta(), None),
    (None, timedelta(), None),
    (False, UNASKED_AFTER, f"no run of {REMEDIATE} has asked"),
    (None, UNASKED_AFTER, f"no run of {REMEDIATE} has asked"),
)
def test_a_question_of_nobody_is_a_problem(
    tmp_path: Path, paused: bool | None, age: timedelta, said: str | None
) -> None:
    """It is named at once where the DAG that asks is paused, else once a run would have asked."""
    states = None if paused is None else RUNS | {REMEDIATE: paused}
    found = [each for each in asking_lines(a_ledger(tmp_path, age), lambda: states) if each.subject != "DAGs"]
    assert [each.subject for each in found] == ([] if said is None else ["questions of east"])
    if said is not None:
        (line,) = found
        assert line.words.startswith("nobody was asked about 1 batch, the first of them published at ")
        assert line.remedy.startswith(said)


def test_no_airflow_is_asked_that_is_not_set_up_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says where Airflow's database is, no process is started, and nothing is said of DAGs."""
    for name in ("AIRFLOW_CONFIG", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setattr("subprocess.run", None)
    assert by_airflow() is None


@pytest.mark.parametrize(("below", "words"), [("", "is no folder"), ("steward", "cannot be made in")])
def test_a_home_that_cannot_be_one(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, words: str
) -> None:
    """A home that is a file, or would be below one, is a problem, and the remedy is another one."""
    (tmp_path / "a file").touch()
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path / "a file" / below))
    ended = steward("doctor", "--json")
    line = lines(ended)["STEWARD_HOME"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert words in line["words"]
    assert line["remedy"].startswith("name another one")


def test_a_home_that_is_not_there_is_not_made(steward: Steward, home: Path) -> None:
    """A missing home is no problem, and the doctor does not make it."""
    home.rmdir()
    ended = steward("doctor", "--json")
    assert ended.code == 0
    assert "not there yet" in lines(ended)["STEWARD_HOME"]["words"]
    assert not home.exists()


def test_only_the_policy_that_is_named_is_read(steward: Steward, home: Path, tmp_path: Path) -> None:
    (home / "policy.yaml").write_text("tc_skew: {no_such_key: 3}\n", encoding="utf-8")
    told = lines(steward("doctor", "--policy", tmp_path / "none.yaml", "--json"))
    assert "no such file" in told["policy none.yaml"]["words"]
    assert "policy policy.yaml" not in told


def test_policies_that_are_never_used_are_a_problem(steward: Steward, home: Path) -> None:
    """A file whose name is not exactly that of a cluster's policy is a problem, with its remedy."""
    (home / "policies").mkdir()
    (home / "policies" / "east.yml").write_text("tc_skew: {warning_spread_coordinators: 3}\n", encoding="utf-8")
    ended = steward("doctor", "--json")
    line = lines(ended)["policies"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "policies/east.yml is never used" in line["words"]
