"""`deploy/nginx/read-only.conf`: a check-up and a proof go through it, and nothing that changes or loads anything."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from pydantic import SecretStr

from benchmarks.observing import collected_here
from lab.ports import answers
from lab.simulator import running_simulator
from lab.testing import cannot_run
from lab.waiting import wait_until
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.verify import verify
from pulsar_steward.collect.collecting import CollectParameters
from pulsar_steward.collect.namespace import look_at
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.apply.worksite import SKEWED, Worksite, said
from tests.builders import CLUSTER, NOW
from tests.ledgers import ledger_at
from tests.live.test_permissions import LOOKS_AT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.simulator import Simulator

CONF = Path(__file__).parents[2] / "deploy" / "nginx" / "read-only.conf"
LOOKING, SUPERUSER = "a-token-of-the-gateway-alone", "a-token-of-a-superuser"
SERVER = re.compile(r"    server \{.*?\n    \}\n", re.DOTALL)


@contextmanager
def gateway(cluster: Simulator, folder: Path) -> Iterator[dict[str, str]]:
    """The file as it is, but for names, tokens and TLS; its addresses, by the brokers' ids."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        cannot_run("no nginx on this machine: install it")
    text = CONF.read_text(encoding="utf-8")
    [server] = SERVER.findall(text)
    with ExitStack() as held:
        sockets = {url: held.enter_context(socket.create_server(("127.0.0.1", 0))) for url in cluster.admin_urls}
        ports = {url: each.getsockname()[1] for url, each in sockets.items()}
    one = re.sub(r"        (server_name|ssl_certificate|ssl_certificate_key) .*\n", "", server)
    servers = (
        one.replace("9443 ssl", f"127.0.0.1:{port}").replace("http://broker-1:8080", url) for url, port in ports.items()
    )
    own = text.replace(server, "".join(servers)).replace("http {\n", "http {\n    client_body_temp_path body;\n", 1)
    for name in ("proxy", "fastcgi", "uwsgi", "scgi"):
        own = own.replace("http {\n", f"http {{\n    {name}_temp_path {name};\n", 1)
    file = folder / "nginx.conf"
    file.write_text(own.replace("LOOKING-TOKEN", LOOKING).replace("SUPERUSER-TOKEN", SUPERUSER), encoding="utf-8")
    globally = f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;"
    command = [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(file), "-g", globally]
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: all(answers("127.0.0.1", port) for port in ports.values()), "the gateway", 30)
            yield {url.partition("://")[2]: f"http://127.0.0.1:{port}" for url, port in ports.items()}
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Simulator, dict[str, str]]]:
    """A cluster that knows the superuser alone, and the gateway's addresses."""
    with (
        running_simulator(SKEWED, token=SUPERUSER, session_s=3600) as cluster,
        gateway(cluster, tmp_path_factory.mktemp("gateway")) as addresses,
    ):
        yield cluster, addresses


def test_a_move_between_clusters_is_looked_at_through_it(behind: tuple[Simulator, dict[str, str]]) -> None:
    """Every read that `steward move-namespace` makes of a cluster passes."""
    _, addresses = behind
    look = look_at(through(addresses), CLUSTER, "public/default")
    assert (look.unread, look.tenant_clusters, look.serves) == ((), frozenset({"local"}), True)


def through(addresses: dict[str, str]) -> AdminSettings:
    """Settings of a connection that looks."""
    return AdminSettings(tuple(addresses.values())[:1], SecretStr(LOOKING), address_map=tuple(addresses.items()))


def test_all_that_looks_goes_through(behind: tuple[Simulator, dict[str, str]], tmp_path: Path) -> None:
    """A complete snapshot, a dry run and a proof are made through the gateway with the gateway's own token."""
    cluster, addresses = behind
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    site, looking = Worksite(cluster, engine, token=SecretStr(SUPERUSER)), through(addresses)
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), CLUSTER, NOW))
    collected_here(looking, CollectParameters(cluster=CLUSTER, taken_at=NOW, policy=site.policy.collect), folder)
    meta = open_snapshot(folder.uri).meta()
    assert (meta.coordinators, meta.unread) == (16, ())
    plan = site.approved(site.move(0))
    with site.context() as context, context.reading(looking) as reading:
        assert "unload" in rehearse(reading, plan, plan.batch("b1"))
    assert said(site.carry_out(plan)) == ["done"]
    with site.context() as context, context.reading(looking) as reading:
        assert verify(reading, plan.plan_id, "b1").proved
    engine.dispose()


NAMESPACE = "/admin/v2/namespaces/pulsar/system"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", f"{NAMESPACE}/0x00000000_0x40000000/unload", 403),
        ("PUT", NAMESPACE, 403),
        ("POST", f"{NAMESPACE}/retention", 403),
        ("DELETE", NAMESPACE, 403),
        ("DELETE", "/admin/v2/tenants", 403),
        ("GET", "/lookup/v2/topic/persistent/shop/orders/t-partition-0", 403),
        ("GET", "/admin/v2/brokers/health", 403),
        ("GET", "/admin/v2/brokers/backlog-quota-check", 403),
        ("GET", "/admin/v3/transactions/coordinators", 403),
        ("GET", "/admin/v2/namespaces/../brokers/health", 403),
        ("GET", "/admin/v2/namespaces/%2e%2e/brokers/health", 403),
        ("GET", "/admin/v2/namespaces/x%2f..%2fbrokers/health", 403),
        ("GET", "/admin/v2/tenants;/../brokers/health", 403),
        ("GET", "/admin/v2/tenants", 200),
        ("HEAD", "/admin/v2/tenants", 200),
    ],
)
def test_nothing_else_does(behind: tuple[Simulator, dict[str, str]], method: str, path: str, status: int) -> None:
    """The gateway refuses changing methods and any GET that loads or writes, and passes none of them to a broker."""
    cluster, addresses = behind
    cluster.requests.clear()
    base = next(iter(addresses.values()))
    asked = requests.Request(method, base, headers={"Authorization": f"Bearer {LOOKING}"}).prepare()
    asked.url = base + path  # as it is: the library would make another path of some
    with requests.Session() as session:
        assert session.send(asked, timeout=30).status_code == status
    assert bool(cluster.requests.all()) == (status == 200)


@pytest.mark.parametrize("path", [*sorted(LOOKS_AT), "/admin/v2/scalable/shop/orders"])
def test_each_call_that_looks_goes_through(behind: tuple[Simulator, dict[str, str]], path: str) -> None:
    """The gateway passes on every call of which `docs/permissions.md` says the least role that may look so."""
    cluster, addresses = behind
    cluster.requests.clear()
    asked = next(iter(addresses.values())) + path.format(broker="broker-1:8080", bundle="0x00000000_0x40000000")
    requests.get(asked, headers={"Authorization": f"Bearer {LOOKING}"}, timeout=30, allow_redirects=False)
    assert cluster.requests.all()


@pytest.mark.parametrize("token", ["", "Bearer wrong", f"Bearer {SUPERUSER}", f"bearer {LOOKING}x"])
def test_nobody_else_looks(behind: tuple[Simulator, dict[str, str]], token: str) -> None:
    """The gateway refuses every token but its own with 401, and gives metrics to anyone."""
    cluster, addresses = behind
    base = next(iter(addresses.values()))
    cluster.requests.clear()
    assert requests.get(f"{base}/admin/v2/tenants", headers={"Authorization": token}, timeout=30).status_code == 401
    assert cluster.requests.all() == ()
    assert requests.get(f"{base}/metrics/", headers={"Authorization": token}, timeout=30).status_code == 200
