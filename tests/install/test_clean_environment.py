"""The wheel in a clean environment, away from the repository, installed as anybody would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, running_simulator
from tests.install.built import build_wheel, clean_environment, constraints

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(3600)  # the registry may be slow
@pytest.mark.extended("tests/deploy/test_wheel.py", "tests/cli/test_end_to_end.py::test_a_checkup_of_a_cluster")
@pytest.mark.parametrize(
    ("installer", "python"), [("pip", "3.11"), ("pip", "3.12"), ("pip", "3.13"), ("uv", "3.11"), ("uv", "3.13")]
)
def test_a_checkup_away_from_the_repository(tmp_path: Path, installer: str, python: str) -> None:
    environment = clean_environment(tmp_path, python)
    install = ["install", "--quiet", "--constraint", str(constraints(tmp_path)), str(build_wheel(tmp_path))]
    if installer == "uv":
        environment.run("pip", "install", "--quiet", "uv")
        environment.run("uv", "pip", *install)
    else:
        environment.run("pip", *install)
    environment.run("pip", "check")
    listed = environment.run("pip", "list", "--format", "freeze").stdout
    assert not [line for line in listed.splitlines() if "airflow" in line or "spark" in line]
    with running_simulator(ClusterSpec(tc_owner=0)) as cluster:
        looked = environment.run("steward", "checkup", "--admin-url", cluster.admin_urls[0], check=False)
    assert looked.returncode == 1, looked.stderr
    assert "[tc-skew]" in looked.stdout
    page = environment.run("steward", "explain", "tc-skew").stdout
    assert "not at hand" not in page
    described = environment.run("steward", "policy", "show", "--describe").stdout
    assert "tc_skew:" in described
