"""nginx on loopback, where it is installed: in front of a lab's brokers, one port for each of them or one for all."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab import certificates, ports, process
from lab.errors import PartFailedError
from lab.model import ProcessId
from lab.waiting import wait_until

START_S = 30.0
GRACE_S = 5.0

CONFIGURATION = """\
daemon off;
master_process off;
pid {home}/pid;
error_log stderr notice;
events {{ worker_connections 256; }}
http {{
    log_format calls '$server_port $request_method $request_uri $status';
    access_log {home}/access.log calls;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
{servers}}}
"""

SERVER = """\
    upstream brokers-{port} {{ {brokers} }}
    server {{
        listen 127.0.0.1:{port} ssl;
        location / {{ proxy_pass http://brokers-{port}; proxy_redirect off; }}
    }}
"""


class Nginx:
    """A running nginx that ends TLS and passes calls on, as they are, to brokers that speak plain text.

    Attributes:
        urls: ``https://host:port``, one for each group of brokers, in the order that was given.
        ca_file: Certificate to trust for them.
    """

    def __init__(self, home: Path, urls: tuple[str, ...]) -> None:
        self.urls = urls
        self.ca_file = certificates.client_files(home / "secrets").ca_file
        self._log = home / "access.log"

    def calls(self, method: str = "") -> list[str]:
        """``port method path status`` of every call so far, or of those by one method."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.split(" ")[1].startswith(method)]


def installed() -> str | None:
    """Path of the program; Debian keeps it where only root's PATH leads."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def running_nginx(program: str, *groups: Sequence[str]) -> Iterator[Nginx]:
    """An nginx for the length of a ``with`` block.

    Args:
        program: Its path.
        *groups: Brokers (``host:port``) to which one of its ports passes calls on, in turn.

    Raises:
        PartFailedError: It did not come up; the end of its log is in the message.
    """
    with tempfile.TemporaryDirectory(prefix="steward-nginx-") as folder:
        home, free = Path(folder), ports.Ports(None)
        taken = [free.take(ports.LOOPBACK, "nginx") for _ in groups]
        certificates.make(home / "secrets", [ports.LOOPBACK])
        certificate, key = certificates.server_files(home / "secrets")
        servers = "".join(
            SERVER.format(port=port, brokers=" ".join(f"server {broker};" for broker in group))
            for port, group in zip(taken, groups, strict=True)
        )
        configuration = home / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(home=home, certificate=certificate, key=key, servers=servers), encoding="utf-8"
        )
        log = home / "log"
        running = process.spawn([program, "-e", "stderr", "-p", str(home), "-c", str(configuration)], log, tied=True)
        try:
            wait_until(lambda: _serves(taken, running, log), "nginx serves", START_S)
            yield Nginx(home, tuple(f"https://{ports.LOOPBACK}:{port}" for port in taken))
        finally:
            process.end([running], GRACE_S)


def _serves(taken: Sequence[int], running: ProcessId, log: Path) -> bool:
    if process.condition(running) == "gone":
        raise PartFailedError(f"nginx ended; {process.tail(log)}")
    return all(ports.answers(ports.LOOPBACK, port) for port in taken)
