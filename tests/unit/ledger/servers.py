"""A PostgreSQL server of the tests' own: started on loopback, ended with its process group."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "a-made-up-password"
START_SECONDS = 60


def binaries() -> Path | None:
    """The folder with ``initdb`` and ``postgres``, the newest there is; None where there is none."""
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    installed = Path("/usr/lib/postgresql")
    found += sorted(installed.glob("*/bin"), key=lambda folder: folder.parent.name, reverse=True)
    return next((folder for folder in found if (folder / "initdb").exists()), None)


def unprivileged() -> str | None:
    """A user to run the server as where we are root, whom PostgreSQL refuses; None where we are not."""
    return "nobody" if os.geteuid() == 0 else None


@contextmanager
def running_postgres(folder: Path) -> Iterator[URL]:
    """The URL of a fresh database ``postgres`` on a free port, there for the length of the context."""
    user = unprivileged()
    with tempfile.TemporaryDirectory(prefix="steward-pg-") as home:
        data, secret = Path(home, "data"), Path(home, "password")
        secret.write_text(PASSWORD)
        for path in (Path(home), secret):
            if user:
                shutil.chown(path, user)
        initdb: list[str | Path] = [folder / "initdb", "--no-sync", "-D", data, "-U", "steward"]
        initdb += ["-A", "scram-sha-256", "--pwfile", secret]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=home)  # noqa: S603 - fixed arguments
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command: list[str | Path] = [folder / "postgres", "-F", "-D", data]
        command += ["-h", "127.0.0.1", "-p", str(port), "-k", ""]
        log = Path(home, "log")
        with log.open("wb") as output:
            server = subprocess.Popen(  # noqa: S603 - fixed arguments
                command, stdout=output, stderr=output, user=user, cwd=home, start_new_session=True
            )
        try:
            _wait_until_ready(server, port, log)
            yield URL.create("postgresql+psycopg", "steward", PASSWORD, "127.0.0.1", port, "postgres")
        finally:
            server.send_signal(signal.SIGINT)  # "fast" shutdown: clients are cut off
            try:
                server.wait(START_SECONDS)
            finally:
                if server.poll() is None:
                    os.killpg(server.pid, signal.SIGKILL)
                    server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while b"ready to accept connections" not in log.read_bytes():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start on port {port}: {log.read_text(errors='replace')}")
        time.sleep(0.02)
