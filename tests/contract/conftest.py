"""The two clusters that the contract holds to the same words: the simulator, and real brokers where they can run."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from benchmarks.observing import settings_of
from lab.cluster import Lab
from lab.model import VERSIONS
from lab.simulator import running_simulator
from lab.testing import need_lab
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import Api, BreakableTarget
from tests.contract.differences import DIFFERENCES, mark_differences, version_of

if TYPE_CHECKING:
    from lab.pool import LabPool

SESSION_MS = 4000
"""ZooKeeper grants no shorter one than two of its ticks of 2 s."""

LAB_SETTINGS = {
    "metadataStoreSessionTimeoutMillis": str(SESSION_MS),
    "statsUpdateFrequencyInSecs": "2",
    "statsUpdateInitialDelayInSecs": "1",
}

SIMULATOR = "simulator"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks known differences as expected failures, and leaves versions that have any to `--tier all`."""
    mark_differences(items)
    if config.getoption("--tier", "all") == "all":
        return
    left_out = {item for item in items if version_of(item) in DIFFERENCES}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def real(version: str) -> object:
    """Three real brokers of a version, with a token; of every version but the first in `make test-all` only."""
    marks = [pytest.mark.live]
    if version != VERSIONS[0]:
        marks.append(pytest.mark.extended("tests/contract/test_ownership.py", "tests/contract/test_reading.py"))
    return pytest.param(version, id=f"real {version}", marks=marks)


@pytest.fixture(scope="package", params=[SIMULATOR, *map(real, VERSIONS)])
def target(request: pytest.FixtureRequest) -> Iterator[BreakableTarget]:
    """Each cluster once for all the tests, which use namespaces of their own; the real ones are nobody else's."""
    if request.param == SIMULATOR:
        with running_simulator(token="made-up-token", session_s=SESSION_MS / 1000) as simulator:
            yield simulator
        return
    need_lab(request.param)
    labs: LabPool = request.getfixturevalue("labs")
    lab = labs.lab(auth="token", broker_settings=LAB_SETTINGS, pulsar_version=request.param)
    yield lab
    labs.discard(lab)


@pytest.fixture(scope="package")
def api(target: BreakableTarget) -> Iterator[Api]:
    version = target.state.spec.pulsar_version if isinstance(target, Lab) else VERSIONS[0]
    headers = {"Authorization": f"Bearer {target.token}"}
    # A proxy from the environment has no way to this machine's loopback interface.
    with httpx.Client(headers=headers, timeout=30, trust_env=False) as client:
        yield Api(target, client, version)


@pytest.fixture(scope="package")
def reader(target: BreakableTarget) -> Iterator[Reader]:
    """Asks the broker that `Api` asks: others hear of a change from the metadata store, a moment after it."""
    with Reader(replace(settings_of(target, Policy()), urls=target.admin_urls[:1])) as reader:
        yield reader


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace of the test's own, with four bundles and no topics."""
    return api.new_namespace()
