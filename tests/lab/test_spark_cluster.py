"""A Spark cluster of the lab: what is left of one that does not come up."""

from pathlib import Path

import psutil
import pytest

from lab.errors import PartFailedError
from lab.spark_cluster import running_spark
from lab.testing import need_java


@pytest.mark.spark
def test_a_cluster_that_does_not_come_up_leaves_nothing(tmp_path: Path) -> None:
    """The part that ended is named, with what it said; the master is ended."""
    need_java()
    with (
        pytest.raises(PartFailedError, match="Spark's worker-1 ended"),
        running_spark(tmp_path, workers=1, memory_mb=0),
    ):
        pytest.fail("a worker without memory cannot start")
    commands = [" ".join(each.cmdline()) for each in psutil.Process().children(recursive=True)]
    assert not [command for command in commands if "org.apache.spark.deploy" in command]
