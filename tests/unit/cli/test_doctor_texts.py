"""``steward doctor`` as people read it: a healthy cluster, and each trouble with its remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Fault, LoadSpec, running_simulator
from pulsar_steward.cli.doctor.here import spark_lines
from pulsar_steward.policy.place import SECRETS_FOLDERS
from pulsar_steward.runtime.installed_airflow import InstalledAirflow
from pulsar_steward.runtime.installed_spark import InstalledSpark
from tests.builders import NOW
from tests.forward_proxy import forward_proxy
from tests.ledgers import ledger_at
from tests.unit.cli.conftest import Steward, urls_of
from tests.unit.cli.recorded import record_move
from tests.unit.cli.test_doctor import a_program, a_token, doctor, home, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pulsar_steward.cli.doctor.line import Line
    from tests.golden import Golden


__all__ = ["home"]

SIMPLE = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"}
GUARDED = {"authenticationEnabled": "true", "authorizationEnabled": "true"}
MACHINES = ((re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:PORT"), (re.compile(r"\d+\.\d s\b"), "N s"))
"""What differs between two runs: ports and how far clocks are apart."""


@pytest.fixture
def told(tmp_path: Path) -> Callable[[dict[str, dict[str, str]]], str]:
    """The lines as text, each with its remedy, without what differs between two runs."""

    def text(report: dict[str, dict[str, str]]) -> str:
        found = []
        for line in report.values():
            found.append(f"{line['state'].upper()} {line['subject']}: {line['words']}")
            found += [f"  Remedy: {line['remedy']}"] if line["remedy"] else []
        whole = "\n".join(found).replace(str(tmp_path), "/place")
        for pattern, name in MACHINES:
            whole = pattern.sub(name, whole)
        return whole

    return text


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a folder for secrets, with an Airflow and a PySpark that go together."""
    monkeypatch.setenv(SECRETS_FOLDERS, str(tmp_path / "secrets"))
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_airflow", lambda: InstalledAirflow("3.3.2", "1.21.0"))
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_spark", lambda: None)


def test_healthy(steward: Steward, told: Callable[..., str], golden: Golden, home: Path) -> None:
    """Nothing has a remedy where all is well; only GETs are sent, and no file is made in the home."""
    with running_simulator(ClusterSpec()) as cluster:
        ended = steward("doctor", *urls_of(cluster), "--json")
        assert {record.method for record in cluster.requests.all()} == {"GET"}
    golden(told(lines(ended)))
    assert ended.code == 0
    assert list(home.rglob("*")) == []


def test_as_text(steward: Steward, golden: Golden, home: Path) -> None:
    """Without an address the text ends with the advice to name a cluster, and with the result."""
    home.chmod(0o700)
    ended = steward("doctor")
    golden(ended.out[ended.out.index("No cluster was asked") :])


def test_a_remedy_that_asks_ends_with_its_question_mark(steward: Steward) -> None:
    """A remedy that is a question ends with its question mark and without a full stop."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Answer(404, "no such page"), path="/admin/v2/brokers/version"))
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0])
    assert "default)?\n" in ended.out


TROUBLES = {
    "a version that was never tried": ClusterSpec(brokers=1, version="9.1.0"),
    "an upgrade under way": ClusterSpec(brokers=2, versions=("4.0.7",), version="4.2.4"),
    "a version that lacks a call": ClusterSpec(brokers=2, versions=("2.10.6",), version="3.0.7"),
    "another load manager": ClusterSpec(brokers=1, configuration=SIMPLE),
    "an extensible load manager that sheds": ClusterSpec(
        brokers=1, load_manager="extensible", configuration={"loadBalancerSheddingEnabled": "true"}
    ),
    "a clock that is wrong": ClusterSpec(loads=(LoadSpec(), LoadSpec(clock_ahead_s=60), LoadSpec())),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_of_a_cluster(steward: Steward, told: Callable[..., str], golden: Golden, trouble: str) -> None:
    """Each trouble of a cluster has its golden text in the lines on version, load manager and clock."""
    report = doctor(steward, TROUBLES[trouble])
    names = ("version", "load manager", "clock")
    golden(told({name: report[name] for name in names if report[name]["state"] != "ok" or name == "load manager"}))


def test_addresses(steward: Steward, told: Callable[..., str], golden: Golden) -> None:
    """Each trouble with an address has its text: no broker, wrong port, silent brokers, proxy and front door."""

    def at(*options: str) -> str:
        report = lines(steward("doctor", *options, "--json"))
        return told({name: line for name, line in report.items() if name.startswith(("admin API", "brokers"))})

    golden(at("--admin-url", "http://127.0.0.1:1"))
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Answer(404, "no such page"), path="/admin/v2/brokers/version"))
        golden(at("--admin-url", cluster.admin_urls[0]))
    with running_simulator(ClusterSpec(brokers=4), session_s=3600) as cluster:
        dead = {urlsplit(url).netloc for url in cluster.admin_urls[2:]}
        for broker in dead.intersection(cluster.active_brokers()):
            cluster.kill_broker(broker)
        golden(at(*urls_of(cluster)))
    with forward_proxy() as proxy:
        proxy.refusal = b"HTTP/1.1 403 Not that host\r\nContent-Length: 0\r\n\r\n"
        golden(at("--admin-url", "https://b-1:8443", "--proxy", proxy.url))
    with running_simulator(ClusterSpec()) as cluster:
        golden(at("--admin-url", cluster.admin_urls[0], "--front-door"))
        assert len({record.broker_id for record in cluster.requests.all()}) == 1


def test_rights(steward: Steward, told: Callable[..., str], golden: Golden, tmp_path: Path) -> None:
    """The lines on rights have a text for a wrong token, a superuser, too few rights and an expired token."""
    roles = {name: a_token(sub=name) for name in ("admin", "watcher")} | {"late": a_token(sub="late", exp=1)}

    def of(spec: ClusterSpec, given: str, *, may_read: bool = True) -> str:
        (tmp_path / "token").write_text(roles[given], encoding="utf-8")
        with running_simulator(spec, token=roles["admin" if given == "watcher" and may_read else given]) as cluster:
            if not may_read:
                for path in ("/admin/v2/brokers/configuration/runtime", "/admin/v2/tenants"):
                    cluster.faults.add(Fault(Answer(403, "no superuser"), path=path))
            known = ["--admin-url", cluster.admin_urls[0], "--token-file", tmp_path / "token"]
            ended = steward("doctor", *known, "--json")
        report = lines(ended)
        assert roles[given] not in ended.out + ended.err
        return told({name: line for name, line in report.items() if name.startswith(("admin API", "rights", "token"))})

    guarded = ClusterSpec(brokers=1, configuration=GUARDED)
    golden(of(guarded, "watcher"))
    golden(of(guarded, "admin"))
    golden(of(guarded, "watcher", may_read=False))
    golden(of(guarded, "late"))


def test_this_machine(steward: Steward, told: Callable[..., str], golden: Golden, home: Path) -> None:
    """The lines on this machine have a text for an open home, a valid policy and a policy with an unknown key."""
    home.chmod(0o755)
    (home / "policies").mkdir()
    (home / "policies" / "east.yaml").write_text("tc_skew: {warning_spread_coordinators: 3}\n", encoding="utf-8")
    (home / "policy.yaml").write_text("tc_skew: {no_such_key: 3}\n", encoding="utf-8")
    golden(told(lines(steward("doctor", "--json"))))
    assert home.stat().st_mode & 0o777 == 0o755


def test_a_ledger(steward: Steward, told: Callable[..., str], golden: Golden, home: Path, tmp_path: Path) -> None:
    """The lines on a ledger tell if it is as written, open to other users, missing, or not a database."""

    def of(*options: str) -> str:
        report = lines(steward("doctor", *options, "--json"))
        return told({name: line for name, line in report.items() if name.startswith("ledger")})

    engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    before = (home / "ledger.db").read_bytes()
    golden(of())
    (home / "ledger.db").chmod(0o644)
    golden(of())
    assert ((home / "ledger.db").read_bytes(), (home / "ledger.db").stat().st_mode & 0o777) == (before, 0o644)
    golden(of("--ledger", f"sqlite:///{tmp_path / 'none.db'}"))
    (tmp_path / "text.db").write_bytes(b"no database" * 100)
    (tmp_path / "text.db").chmod(0o600)
    golden(of("--ledger", f"sqlite:///{tmp_path / 'text.db'}"))


def test_events(steward: Steward, told: Callable[..., str], golden: Golden) -> None:
    """The lines on events have a text for an address that is reached, one that is not, and an invalid one."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        place = cluster.admin_urls[0].removeprefix("http://")
        report = lines(steward("doctor", "--events-url", f"pulsar://{place},127.0.0.1:1", "--json"))
        golden(told({name: line for name, line in report.items() if name.startswith("events")}))
    golden(steward("doctor", "--events-url", "http://b:8080").err)


def as_report(found: Iterable[Line]) -> dict[str, dict[str, str]]:
    """Lines that no command printed."""
    return {line.subject: msgspec.to_builtins(line) for line in found}


def test_java_and_spark(told: Callable[..., str], golden: Golden, tmp_path: Path) -> None:
    for name, java, spark in (("new", "17.0.15", "4.3.0"), ("old", "1.8.0_292", "3.5.1")):
        a_program(tmp_path / name, "java", f'openjdk version "{java}"')
        a_program(tmp_path / name, "spark-submit", f"version {spark}")
    for name in ("new", "old", "none"):
        golden(told(as_report(spark_lines({"PATH": str(tmp_path / name)}))))


def test_packages(steward: Steward, told: Callable[..., str], golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines on packages have a text for PySpark that was overwritten and an Airflow without approvals."""
    spark = InstalledSpark("4.3.0", "4.2.0", 515, 99)
    airflow = InstalledAirflow("3.0.6", "1.21.0")
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_airflow", lambda: airflow)
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_spark", lambda: spark)
    report = lines(steward("doctor", "--json"))
    golden(told({name: report[name] for name in ("Airflow", "PySpark")}))
