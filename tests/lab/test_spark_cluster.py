"""A Spark cluster of the lab: what is left of one that does not come up."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lab.errors import PartFailedError
from lab.spark_cluster import running_spark
from lab.testing import need_java

PARTS = ("org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker")


@pytest.mark.spark
def test_a_cluster_that_does_not_come_up_leaves_nothing(tmp_path: Path) -> None:
    need_java()
    with (
        pytest.raises(PartFailedError, match="Spark's worker-1 ended"),
        running_spark(tmp_path, workers=1, memory_mb=0),
    ):
        pytest.fail("a worker without memory cannot start")
    assert not [command for command in commands() if any(part in command for part in PARTS)]


def commands() -> Iterator[str]:
    """The command lines of all processes below this one; Spark's of other tests are among them."""
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            yield " ".join(each.cmdline())
