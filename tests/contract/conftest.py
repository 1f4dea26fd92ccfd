"""The two clusters that the contract holds to the same words: the simulator, and real brokers where they can run."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx
import pytest

from lab.cluster import running_lab
from lab.simulator import running_simulator
from lab.testing import need_lab
from tests.contract.api import Api, BreakableTarget

SESSION_MS = 4000
"""ZooKeeper grants no shorter one than two of its ticks of 2 s."""

LAB_SETTINGS = {
    "metadataStoreSessionTimeoutMillis": str(SESSION_MS),
    "statsUpdateFrequencyInSecs": "2",
    "statsUpdateInitialDelayInSecs": "1",
}


def simulated(_: pytest.TempPathFactory) -> AbstractContextManager[BreakableTarget]:
    """Three made-up brokers with a token."""
    return running_simulator(token="made-up-token", session_s=SESSION_MS / 1000)


def real(folder: pytest.TempPathFactory) -> AbstractContextManager[BreakableTarget]:
    """Three real brokers with a token."""
    need_lab()
    home = folder.mktemp("labs")
    return running_lab("contract", home=home, progress=print, auth="token", broker_settings=LAB_SETTINGS)


@pytest.fixture(
    scope="package",
    params=[pytest.param(simulated, id="simulator"), pytest.param(real, id="real", marks=pytest.mark.live)],
)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BreakableTarget]:
    """Each cluster once for all the tests, which use namespaces of their own."""
    with request.param(tmp_path_factory) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def api(target: BreakableTarget) -> Iterator[Api]:
    """Raw calls to the cluster."""
    headers = {"Authorization": f"Bearer {target.token}"}
    # A proxy from the environment has no way to this machine's loopback interface.
    with httpx.Client(headers=headers, timeout=30, trust_env=False) as client:
        yield Api(target, client)


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace of the test's own, with four bundles and no topics."""
    return api.new_namespace()
