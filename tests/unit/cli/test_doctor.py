"""``steward doctor``: each line names what is the matter, and what to do."""

from __future__ import annotations

import base64
import json
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import Answer, ClusterSpec, Fault, LoadSpec, running_simulator
from pulsar_steward.cli.doctor.spark import package_lines, spark_lines
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.runtime.installed_airflow import InstalledAirflow
from pulsar_steward.runtime.installed_spark import InstalledSpark
from tests.attacks.wire_parts import Authority, over_tls
from tests.builders import NOW, a_plan
from tests.cases import cases
from tests.forward_proxy import forward_proxy, saying
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.pulsar.scripted import answer, scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Ended, Steward
    from tests.unit.pulsar.scripted import ScriptedBroker


TOKEN = "made.up-token_of-a.superuser"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``STEWARD_HOME`` as the first run makes it."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("STEWARD_HOME", str(folder))
    return folder


def lines(ended: Ended) -> dict[str, dict[str, str]]:
    """Lines that were printed, by subject."""
    report: dict[str, Any] = json.loads(ended.out)
    assert report["exit_code"] == ended.code
    return {line["subject"]: line for line in report["lines"]}


def a_token(**claims: str | int) -> str:
    """A JSON web token that nobody signed."""
    header, payload = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({}, claims))
    return f"{header.decode()}.{payload.decode()}.signature"


def test_a_healthy_cluster_is_fine(steward: Steward, home: Path) -> None:
    """A healthy cluster has only lines that are fine; the doctor sends only GETs and adds no file to the home."""
    before = sorted(home.rglob("*"))
    with running_simulator(ClusterSpec()) as cluster:
        ended = steward("doctor", *(word for url in cluster.admin_urls for word in ("--admin-url", url)), "--json")
        methods = {record.method for record in cluster.requests.all()}

    told = lines(ended)
    assert ended.code == 0, ended.out
    assert methods == {"GET"}
    assert sorted(home.rglob("*")) == before
    assert {line["state"] for line in told.values()} == {"ok"}
    assert {line["remedy"] for line in told.values()} == {""}
    assert told["brokers"]["words"] == "3 of 3 listed brokers answer"
    assert told["version"]["words"] == "4.0.7 on 3 brokers"
    assert told["load manager"]["words"].startswith("ModularLoadManagerImpl")
    assert told["rights"]["words"].startswith("without a token; the cluster asks nobody who they are")


def test_the_text_says_the_same(steward: Steward) -> None:
    """The text has a word for each line's state, the remedy below its line, and the number of problems."""
    with running_simulator(ClusterSpec(version="9.1.0")) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0])

    assert ended.code == 1
    assert "OK       brokers: 3 of 3 listed brokers answer" in ended.out
    assert "PROBLEM  version: 9.1.0 on 3 brokers" in ended.out
    assert "         Remedy: a check-up is safe" in ended.out
    assert "RESULT: 1 problem, 0 could not be looked at" in ended.out


def test_nobody_there(steward: Steward) -> None:
    """An address that does not answer is unknown, with exit code 2; its line names it and what to check."""
    ended = steward("doctor", "--admin-url", "http://127.0.0.1:1", "--json")
    [line] = [line for subject, line in lines(ended).items() if subject.startswith("admin API")]
    assert (ended.code, line["state"]) == (2, "unknown")
    assert "127.0.0.1:1" in line["words"]
    assert "that the broker runs, and that no firewall lies between" in line["remedy"]
    assert "brokers" not in lines(ended)


@pytest.mark.parametrize("status", [404, 200])
def test_a_wrong_port(steward: Steward, status: int) -> None:
    """A port that answers without the admin API ends the doctor with exit code 2, and the remedy doubts the port."""
    with scripted_brokers() as start:
        server = start()
        server.on("/admin/v2/brokers/version", answer(b"<html>hello</html>", status))
        ended = steward("doctor", "--admin-url", server.url, "--json")
    [line] = [line for subject, line in lines(ended).items() if subject.startswith("admin API")]
    assert ended.code == 2
    assert "is this the admin port of a Pulsar broker" in line["remedy"]


@pytest.mark.parametrize("token", ["wrong-token", None])
def test_a_wrong_token(steward: Steward, tmp_path: Path, token: str | None) -> None:
    """A wrong or missing token ends the doctor with exit code 2; the line names the option, and not the token."""
    (tmp_path / "token").write_text(str(token), encoding="utf-8")
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        given = ["--token-file", tmp_path / "token"] if token else []
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], *given, "--json")
    [line] = [line for subject, line in lines(ended).items() if subject.startswith("admin API")]
    assert ended.code == 2
    assert "--token-file" in line["words"]
    assert ("no credentials were sent" in line["words"]) == (token is None)
    assert token is None or token not in ended.out + ended.err


def test_a_role_that_is_no_superuser(steward: Steward, tmp_path: Path) -> None:
    """A role without a superuser's rights is a problem; the line names it and what it may and may not read."""
    (tmp_path / "token").write_text(token := a_token(sub="watcher"), encoding="utf-8")
    with running_simulator(ClusterSpec(brokers=1), token=token) as cluster:
        cluster.faults.add(Fault(Answer(403, "no superuser"), path="/admin/v2/brokers/configuration/runtime"))
        cluster.faults.add(Fault(Answer(403, "no superuser"), path="/admin/v2/tenants"))
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--token-file", tmp_path / "token", "--json")
    line = lines(ended)["rights"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "'watcher', without a superuser's rights" in line["words"]
    assert (
        "what may not be read: a broker's configuration, the list of tenants; what may be: the list of brokers"
        in (line["words"])
    )
    assert "superuser's token" in line["remedy"]


def test_a_superuser_is_named(steward: Steward, tmp_path: Path) -> None:
    """The line on rights names the token's subject and a superuser's rights, and the token is not shown."""
    (tmp_path / "token").write_text(token := a_token(sub="admin"), encoding="utf-8")
    asks = {"authenticationEnabled": "true", "authorizationEnabled": "true"}
    with running_simulator(ClusterSpec(brokers=1, configuration=asks), token=token) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--token-file", tmp_path / "token", "--json")
    assert ended.code == 0
    assert lines(ended)["rights"]["words"].startswith("by a token for 'admin', with a superuser's rights")
    assert token not in ended.out


def test_half_of_the_brokers(steward: Steward) -> None:
    """Brokers that do not answer are named with the consequences, and an address without an answer is a problem."""
    with running_simulator(ClusterSpec(brokers=4), session_s=3600) as cluster:
        gone = cluster.active_brokers()[2:]
        for broker in gone:
            cluster.kill_broker(broker)
        urls = [word for url in cluster.admin_urls for word in ("--admin-url", url)]
        ended = steward("doctor", *urls, "--json")
    told = lines(ended)
    assert ended.code == 1
    assert told["brokers"]["words"].startswith("2 of 4 listed brokers do not answer: ")
    assert all(broker in told["brokers"]["words"] for broker in gone)
    assert "firewalls" in told["brokers"]["remedy"]
    assert "a snapshot is partial" in told["brokers"]["remedy"]
    silent = [line for subject, line in told.items() if subject.startswith("admin API") and line["state"] != "ok"]
    assert [line["state"] for line in silent] == ["problem", "problem"]
    assert told["version"]["words"] == "4.0.7 on 2 brokers"


@pytest.mark.parametrize("version", ["9.1.0", "4.1.2", "4.0.7-acme", "a fork", ""])
def test_an_unknown_version(steward: Steward, version: str) -> None:
    """An untried version is a problem: the line says that every change is refused there, and names the remedy."""
    with running_simulator(ClusterSpec(brokers=1, version=version)) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--json")
    line = lines(ended)["version"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert f"Refused there: every change: Pulsar {version}" in line["words"]
    assert "guards.versions_tried_here" in line["remedy"]


def test_what_is_refused_on_a_version_is_named(steward: Steward) -> None:
    with running_simulator(ClusterSpec(brokers=2, versions=("2.10.6",), version="3.0.7")) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--json")
    line = lines(ended)["version"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert line["words"].startswith("2.10.6 on 1 broker, 3.0.7 on 1 broker. Refused there: move a bundle to a broker, ")
    assert "destinationBroker" in line["words"]
    assert "that came with 3.0 (apache/pulsar#18663)" in line["words"]
    assert "retention" not in line["words"]


def test_a_version_that_the_operator_vouches_for(steward: Steward, tmp_path: Path) -> None:
    """An untried version is no problem if the policy lists it in `guards.versions_tried_here`."""
    (tmp_path / "p.yaml").write_text('guards: {versions_tried_here: ["4.3"]}\n', encoding="utf-8")
    with running_simulator(ClusterSpec(brokers=1, version="4.3.1")) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--policy", tmp_path / "p.yaml", "--json")
    assert lines(ended)["version"]["state"] == "ok"


def test_another_load_manager(steward: Steward) -> None:
    """A load manager with which Steward was not tried is a problem, and the line names it."""
    name = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
    with running_simulator(ClusterSpec(brokers=1, configuration={"loadManagerClassName": name})) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--json")
    line = lines(ended)["load manager"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "SimpleLoadManagerImpl" in line["words"]


def test_the_extensible_load_manager(steward: Steward) -> None:
    """The line on the load manager tells whether its own shedding is on, and by which strategy."""
    spec = ClusterSpec(brokers=1, load_manager="extensible", configuration={"loadBalancerSheddingEnabled": "true"})
    with running_simulator(spec) as cluster:
        line = lines(steward("doctor", "--admin-url", cluster.admin_urls[0], "--json"))["load manager"]
    assert line["state"] == "ok"
    assert line["words"] == "ExtensibleLoadManagerImpl, its own shedding is on (TransferShedder)"


def test_a_clock_that_is_wrong(steward: Steward) -> None:
    """A clock that is wrong is a problem, and the line names the broker and the difference."""
    with running_simulator(ClusterSpec(loads=(LoadSpec(), LoadSpec(clock_ahead_s=60), LoadSpec()))) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--json")
        late = cluster.admin_urls[1].removeprefix("http://")
    line = lines(ended)["clock"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert f"that of {late} is 60" in line["words"] or f"that of {late} is 59" in line["words"]
    assert "NTP" in line["remedy"]


def test_a_ledger_as_written(steward: Steward, home: Path) -> None:
    """The default ledger is found and its rows are compared, and its file stays unchanged."""
    engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    before = (home / "ledger.db").read_bytes()
    ended = steward("doctor", "--json")
    assert ended.code == 0, ended.out
    assert lines(ended)["ledger"]["words"].startswith("as written: 7 rows compared")
    assert (home / "ledger.db").read_bytes() == before


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


def test_a_ledger_that_others_may_read(steward: Steward, home: Path) -> None:
    """A ledger that other users may read is a problem, and the doctor leaves the file's mode as it is."""
    ledger_at(f"sqlite:///{home / 'ledger.db'}").dispose()
    (home / "ledger.db").chmod(0o644)
    ended = steward("doctor", "--json")
    assert ended.code == 1
    assert lines(ended)["ledger's file"]["remedy"] == f"chmod 600 {home / 'ledger.db'}"
    assert (home / "ledger.db").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("made", "words"),
    [(None, "there is no ledger"), (b"", "no tables of this Steward yet"), (b"no database" * 100, "not a database")],
)
def test_a_ledger_that_cannot_be_read(steward: Steward, tmp_path: Path, made: bytes | None, words: str) -> None:
    """A ledger that cannot be read ends the doctor with exit code 2, and the line has the reason."""
    file = tmp_path / "some.db"
    if made is not None:
        file.write_bytes(made)
        file.chmod(0o600)
    ended = steward("doctor", "--ledger", f"sqlite:///{file}", "--json")
    assert ended.code == 2
    assert words in lines(ended)["ledger"]["words"]


def test_where_events_go(steward: Steward) -> None:
    """Each address for events is fine or unknown, and an invalid address is an error of the arguments."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = steward("doctor", "--events-url", f"pulsar://127.0.0.1:{port},127.0.0.1:1", "--json")
    told = lines(ended)
    assert told[f"events pulsar://127.0.0.1:{port}"]["state"] == "ok"
    assert told["events pulsar://127.0.0.1:1"]["state"] == "unknown"
    assert ended.code == 2
    assert "expected pulsar+ssl://" in steward("doctor", "--events-url", "http://b:8080").err


def test_events_over_tls_where_nobody_speaks_it(steward: Steward) -> None:
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        place = cluster.admin_urls[0].removeprefix("http://")
        line = lines(steward("doctor", "--events-url", f"pulsar+ssl://{place}", "--json"))[
            f"events pulsar+ssl://{place}"
        ]
    assert line["state"] == "problem"
    assert "TLS failed" in line["words"]
    assert "--ca-file" in line["remedy"]


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


def test_a_proxy_that_refuses(steward: Steward) -> None:
    with forward_proxy() as proxy:
        proxy.refusal = b"HTTP/1.1 403 Not that host\r\nContent-Length: 0\r\n\r\n"
        ended = steward("doctor", "--admin-url", "https://b-1:8443", "--proxy", proxy.url, "--json")
    line = address_line(ended)
    assert "the forward proxy (`proxy`) refuses it: " in line["words"]
    assert "403 Not that host" in line["words"]
    assert "check --proxy" in line["remedy"]


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


def test_settings_that_contradict_each_other(steward: Steward) -> None:
    """A front door with an address map is a line of the report, which names both, and the exit code is 2."""
    both = ["--front-door", "--address-map", "b-1:8080=https://c:8443"]
    ended = steward("doctor", "--admin-url", "https://b-1:8443", *both, "--json")
    words = lines(ended)["how to reach it"]["words"]
    assert ended.code == 2
    assert "`front_door`" in words
    assert "`address_map`" in words


def test_a_ca_file_that_cannot_be_used(steward: Steward, tmp_path: Path) -> None:
    """A CA file that cannot be used is a line of the report, which names `ca_file`, and the exit code is 2."""
    (tmp_path / "no.pem").touch()
    ended = steward("doctor", "--admin-url", "https://b-1:8443", "--ca-file", tmp_path / "no.pem", "--json")
    assert ended.code == 2
    assert "`ca_file`" in lines(ended)["how to reach it"]["words"]


def test_a_front_door(steward: Steward) -> None:
    """Behind a front door the line on brokers is a problem: none of them was asked, and a remedy is named."""
    with running_simulator(ClusterSpec()) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--front-door", "--json")
        asked = {record.broker_id for record in cluster.requests.all()}
    line = lines(ended)["brokers"]
    assert (ended.code, line["state"], len(asked)) == (1, "problem", 1)
    assert "3 brokers listed, and none was asked" in line["words"]
    assert "--address-map" in line["remedy"]


def test_who_is_asking_by_a_user_and_a_password(steward: Steward, tmp_path: Path) -> None:
    """The line on rights names the user of basic authentication, and the password is not shown."""
    (tmp_path / "basic").write_text("watcher:hidden-password", encoding="utf-8")
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        ended = steward("doctor", "--admin-url", cluster.admin_urls[0], "--basic-file", tmp_path / "basic", "--json")
    assert lines(ended)["rights"]["words"].startswith("as user 'watcher', by a password")
    assert "hidden" not in ended.out + ended.err


def a_program(folder: Path, name: str, said: str) -> None:
    """A program that only says something."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({said!r}, file=sys.stderr)\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("java", "spark", "states"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "version 4.3.0", ["ok", "ok"]),
        ('java version "1.8.0_292"', "version 3.5.1", ["problem", "problem"]),
        ("nothing", "nothing", ["problem", "problem"]),
        (None, None, ["problem", "problem"]),
    ],
)
def test_java_and_spark(tmp_path: Path, java: str | None, spark: str | None, states: list[str]) -> None:
    """Java and Spark are problems with a remedy if they are missing, too old or of an unknown version."""
    for name, said in (("java", java), ("spark-submit", spark)):
        if said is not None:
            a_program(tmp_path / "bin", name, said)
    told = list(spark_lines({"PATH": str(tmp_path / "bin")}))
    assert [line.state for line in told] == states
    assert all(bool(line.remedy) == (line.state != "ok") for line in told)


def test_two_packages_that_overwrote_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = InstalledSpark("4.3.0", "4.2.0", 515, 99)
    monkeypatch.setattr("pulsar_steward.cli.doctor.spark.installed_spark", lambda: found)
    line = {line.subject: line for line in package_lines()}["PySpark"]
    assert (line.state, line.words, line.remedy) == ("problem", found.words, found.remedy)


@pytest.mark.parametrize(
    ("airflow", "state", "words"),
    [
        (InstalledAirflow("3.3.2", "1.21.0"), "ok", "Airflow 3.3.2 with standard provider 1.21.0"),
        (InstalledAirflow("3.0.6", "1.21.0"), "problem", "no approvals"),
        (InstalledAirflow("3.4.0", "1.21.0"), "problem", "not tried with Airflow 3.4.0"),
    ],
)
def test_the_airflow_beside_it(
    monkeypatch: pytest.MonkeyPatch, airflow: InstalledAirflow, state: str, words: str
) -> None:
    """An Airflow that lacks approvals or was not tried is a problem, and the remedy names the versions to install."""
    monkeypatch.setattr("pulsar_steward.cli.doctor.spark.installed_airflow", lambda: airflow)
    line = {line.subject: line for line in package_lines()}["Airflow"]
    assert (line.state, words in line.words) == (state, True)
    assert ("3.1.8 to 3.3" in line.remedy) == (state == "problem")


def test_no_airflow_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has no line on Airflow if none is installed here, as it may run elsewhere."""
    monkeypatch.setattr("pulsar_steward.cli.doctor.spark.installed_airflow", lambda: None)
    assert "Airflow" not in {line.subject for line in package_lines()}
