"""Labs that are reached in other ways than by a token at the addresses that they list, and what was written then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lab.faults.real.ground import COMMON_SETTINGS
from tests.command import steward
from tests.live.test_checkup import BUSY_MACHINE
from tests.written import holders

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

REFRESH = ("authenticationRefreshCheckSeconds", "1")
"""Brokers look every second whether the token of a connection has ended, not every minute."""


def by_access_tokens(labs: LabPool) -> Lab:
    """Two brokers with ports for plain text and for TLS side by side, and access tokens of an issuer."""
    settings = dict((*COMMON_SETTINGS, REFRESH))
    return labs.lab(brokers=2, auth="oauth2", listeners="both", hosts="distinct", broker_settings=settings)


class Checkup:
    """A check-up of a lab in a folder, where its policy, its reports and its snapshot are kept.

    Args:
        folder: Where.
        *arguments: How the lab is reached, and as whom.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        (folder / "policy.yaml").write_text(BUSY_MACHINE, encoding="utf-8")
        kept = ["--policy", "policy.yaml", "--keep", "kept", "--html", "out.html", "--json", "out.json"]
        self.ended = steward(folder, "checkup", *arguments, *kept, "--verbose")
        self._report = folder / "out.json"

    @property
    def about(self) -> dict[str, Any]:
        """The report's part about itself."""
        about: dict[str, Any] = json.loads(self._report.read_text(encoding="utf-8"))["about"]
        return about

    def assert_complete(self, brokers: int) -> None:
        """Asserts that this many brokers were read and that the check-up was complete."""
        assert self.ended.returncode in {0, 1}, said_by(self.ended)
        assert (self.about["complete"], self.about["brokers_read"]) == (True, brokers)

    def assert_shut_out(self, words: str) -> None:
        """Asserts that nothing was looked at, and that the line says why."""
        assert (self.ended.returncode, self.ended.stdout) == (2, ""), said_by(self.ended)
        assert words in self.ended.stderr.replace("\n", " ")


def said_by(ended: subprocess.CompletedProcess[str]) -> str:
    return f"{ended.stdout}\n{ended.stderr}"


def assert_told_by_nothing(
    secrets: Iterable[str], lab: Lab, folder: Path, *texts: str, but: Iterable[Path] = ()
) -> None:
    """No secret is in what was written: files in a folder, the lab's own logs, and texts; but in its own files it is.

    Args:
        secrets: The secrets.
        lab: The lab.
        folder: Of everything that Steward wrote.
        *texts: What was printed, logged and published.
        but: Files below the folder that hold the secrets for Steward.
    """
    named = {f"text {number}": text for number, text in enumerate(texts)}
    assert holders(secrets, [folder, lab.home / "log"], named) == set(map(str, but))
