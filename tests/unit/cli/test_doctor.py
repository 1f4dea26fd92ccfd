"""``steward doctor``: each line names what is the matter, and what to do."""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import ClusterSpec, LoadSpec, running_simulator
from pulsar_steward.cli.doctor.here import package_lines, spark_lines
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.runtime.installed_airflow import InstalledAirflow
from tests.attacks.wire_parts import Authority, over_tls
from tests.builders import NOW, a_plan
from tests.cases import cases
from tests.forward_proxy import saying
from tests.ledgers import ledger_at
from tests.unit.pulsar.scripted import ScriptedBroker, answer, scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Ended, Steward


TOKEN = "made.up-token_of-a.superuser"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``STEWARD_HOME`` as the first run makes it."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("STEWARD_HOME", str(folder))
    return folder


STATES = ("ok", "problem", "unknown")
"""A report's exit code is the worst state's place in this order."""


def lines(ended: Ended) -> dict[str, dict[str, str]]:
    """Lines that were printed, by subject."""
    report: dict[str, Any] = json.loads(ended.out)
    worst = max(STATES.index(line["state"]) for line in report["lines"])
    assert report["exit_code"] == ended.code == worst
    return {line["subject"]: line for line in report["lines"]}


def doctor(steward: Steward, spec: ClusterSpec, *options: object) -> dict[str, dict[str, str]]:
    """Lines about the first broker of a made-up cluster."""
    with running_simulator(spec) as cluster:
        return lines(steward("doctor", "--admin-url", cluster.admin_urls[0], *options, "--json"))


def a_token(**claims: str | int) -> str:
    """A JSON web token that nobody signed."""
    header, payload = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({}, claims))
    return f"{header.decode()}.{payload.decode()}.signature"


def test_the_text_says_the_same(steward: Steward) -> None:
    """The text has a word for each line's state, the remedy below its line, and the number of problems."""
    with running_simulator(ClusterSpec(version="9.1.0")) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0])

    assert ended.code == 1
    assert "OK       brokers: 3 of 3 listed brokers answer" in ended.out
    assert "PROBLEM  version: 9.1.0 on 3 brokers" in ended.out
    assert "         Remedy: a check-up is safe" in ended.out
    assert "RESULT: 1 problem, 0 could not be looked at" in ended.out


def test_a_wrong_port(steward: Steward) -> None:
    """A port that answers without the admin API ends the doctor with exit code 2, and the remedy doubts the port."""
    with scripted_brokers() as start:
        server = start()
        server.on("/admin/v2/brokers/version", answer(b"<html>hello</html>", 200))
        ended = steward("doctor", "--admin-url", server.url, "--json")
    assert "is this the admin port of a Pulsar broker" in address_line(ended)["remedy"]


def test_a_missing_token(steward: Steward) -> None:
    """The line on the address says that nothing was sent, and its remedy names the option."""
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--json")
    assert "--token-file" in address_line(ended)["remedy"]
    assert "no credentials were sent" in address_line(ended)["words"]


@pytest.mark.parametrize("version", ["4.1.2", "4.0.7-acme", "a fork", ""])
def test_an_unknown_version(steward: Steward, version: str) -> None:
    """An untried version is a problem: the line says that every change is refused there, and names the remedy."""
    line = doctor(steward, ClusterSpec(brokers=1, version=version))["version"]
    assert line["state"] == "problem"
    assert f"Refused there: every change: Pulsar {version}" in line["words"]
    assert "guards.versions_tried_here" in line["remedy"]


def test_a_version_that_the_operator_vouches_for(steward: Steward, tmp_path: Path) -> None:
    """An untried version is no problem if the policy lists it in `guards.versions_tried_here`."""
    (tmp_path / "p.yaml").write_text('guards: {versions_tried_here: ["4.3"]}\n', encoding="utf-8")
    spec = ClusterSpec(brokers=1, version="4.3.1")
    assert doctor(steward, spec, "--policy", tmp_path / "p.yaml")["version"]["state"] == "ok"


def test_a_clock_that_is_wrong(steward: Steward) -> None:
    """The line names the difference; which broker is late, and the remedy, is in the text."""
    line = doctor(steward, ClusterSpec(loads=(LoadSpec(), LoadSpec(clock_ahead_s=60), LoadSpec())))["clock"]
    assert re.search(r" is (60|59)\.\d s ahead", line["words"])


@cases("known", ("in the ledger", ("east", "west")), ("by the brokers that answer", ("east",)))
def test_two_names_of_one_cluster(steward: Steward, home: Path, known: tuple[str, ...]) -> None:
    """Names that lead to one Pulsar cluster are a problem, be both in the ledger or one given for what answers."""
    engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
    with running_simulator(ClusterSpec()) as cluster:
        url, name = cluster.admin_urls[0], "metadata in another writing"
        for each in known:
            plan = a_plan(cluster=each, pulsar_cluster=ClusterIdentity(name="local", metadata_id=name[:16]))
            brokers = [address.partition("://")[2] for address in cluster.admin_urls]
            LedgerWriter(engine).record_plan(plan, NOW, brokers=brokers)
        engine.dispose()
        ended = steward("doctor", "--admin-url", url, "--cluster", "west", "--json")
    told = lines(ended)["names of clusters"]
    assert (ended.code, told["state"]) == (1, "problem")
    assert told["words"].startswith("east, west are names of one Pulsar cluster")


def test_a_ledger_without_tables(steward: Steward, tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    file.touch(mode=0o600)
    ended = steward("doctor", "--ledger", f"sqlite:///{file}", "--json")
    assert "no tables of this Steward yet" in lines(ended)["ledger"]["words"]
    assert ended.code == 2


def test_events_over_tls_where_nobody_speaks_it(steward: Steward) -> None:
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        url = f"pulsar+ssl://{cluster.admin_urls[0].removeprefix('http://')}"
        line = lines(steward("doctor", "--events-url", url, "--json"))[f"events {url}"]
    assert (line["state"], "TLS failed" in line["words"], "--ca-file" in line["remedy"]) == ("problem", True, True)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    """One that knows nothing but itself."""
    with scripted_brokers() as start:
        yield start()


def address_line(ended: Ended) -> dict[str, str]:
    """Line of the only address."""
    [line] = [line for subject, line in lines(ended).items() if subject.startswith("admin API")]
    assert (ended.code, line["state"]) == (2, "unknown")
    return line


def test_wrong_certificates_and_schemes(steward: Steward, broker: ScriptedBroker, tmp_path: Path) -> None:
    """Four mistakes with certificates and schemes each have a remedy that names the port, scheme or option."""
    authority = Authority(tmp_path)
    with saying(b"HTTP/1.1 400 Illegal character\r\n\r\n") as place:
        plain = steward("doctor", "--admin-url", f"https://{place}", "--json")
    with saying(b"\x15\x03\x03\x00\x02\x02\x50") as place:
        only = steward("doctor", "--admin-url", f"http://{place}", "--json")
    url = over_tls(broker, authority.files, clients_of=authority.files[0])
    unknown = steward("doctor", "--admin-url", url, "--json")
    wanted = steward("doctor", "--admin-url", url, "--ca-file", authority.files[0], "--json")
    assert "name the port for https" in address_line(plain)["remedy"]
    assert "--ca-file" in address_line(unknown)["remedy"]
    assert "by --client-cert and --client-key" in address_line(wanted)["remedy"]
    assert "https://" in address_line(only)["remedy"]


def test_an_issuer_that_refuses(steward: Steward, broker: ScriptedBroker, tmp_path: Path) -> None:
    """The line on the address quotes the issuer's refusal and names the option, and the secret is not shown."""
    broker.on("/token", answer({"error": "invalid_client"}, status=401))
    written = {"client_id": "steward", "client_secret": "hidden-secret", "token_url": f"{broker.url}/token"}
    (tmp_path / "oauth2.json").write_text(json.dumps(written), encoding="utf-8")
    ended = steward("doctor", "--admin-url", "https://b-1:8443", "--oauth2-file", tmp_path / "oauth2.json", "--json")
    line = address_line(ended)
    assert "the issuer refuses: invalid_client" in line["words"]
    assert "--oauth2-file" in line["remedy"]
    assert "hidden" not in ended.out + ended.err


def test_settings_that_cannot_work_are_a_line(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that contradict each other, or a CA file that is none, are named, and the exit code is 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no.pem").touch()
    both = ["--front-door", "--address-map", "b-1:8080=https://c:8443"]
    for options, named in ((both, ["front_door", "address_map"]), (["--ca-file", "no.pem"], ["ca_file"])):
        ended = steward("doctor", "--admin-url", "https://b-1:8443", *options, "--json")
        words = lines(ended)["how to reach it"]["words"]
        assert ended.code == 2
        assert all(f"`{name}`" in words for name in named)


def test_who_is_asking_by_a_user_and_a_password(steward: Steward, tmp_path: Path) -> None:
    """The line on rights names the user of basic authentication, and the password is not shown."""
    (tmp_path / "basic").write_text("watcher:hidden-password", encoding="utf-8")
    told = doctor(steward, ClusterSpec(brokers=1), "--basic-file", tmp_path / "basic")
    assert told["rights"]["words"].startswith("as user 'watcher', by a password")
    assert "hidden" not in str(told)


def a_program(folder: Path, name: str, said: str) -> None:
    """A program that only says something."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({said!r}, file=sys.stderr)\n", encoding="utf-8")
    program.chmod(0o755)


def test_java_and_spark_of_no_known_version(tmp_path: Path) -> None:
    for name in ("java", "spark-submit"):
        a_program(tmp_path / "bin", name, "nothing")
    told = list(spark_lines({"PATH": str(tmp_path / "bin")}))
    assert [(line.state, bool(line.remedy)) for line in told] == [("problem", True)] * 2


def test_the_airflow_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Airflow that was not tried is a problem with the versions to install; where none is, it may be elsewhere."""
    found = InstalledAirflow("3.4.0", "1.21.0")
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_airflow", lambda: found)
    line = {line.subject: line for line in package_lines()}["Airflow"]
    assert (line.state, "not tried with Airflow 3.4.0" in line.words) == ("problem", True)
    assert "3.1.8 to 3.3" in line.remedy
    monkeypatch.setattr("pulsar_steward.cli.doctor.here.installed_airflow", lambda: None)
    assert "Airflow" not in {line.subject for line in package_lines()}
