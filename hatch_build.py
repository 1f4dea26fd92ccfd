"""Maps files into the wheel: DAGs, jobs and the plugin, and the documents that messages and reports name.

In the repository they keep their places at the top. An editable installation reads them there.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {
    "plugins/steward_plugin.py": "steward_plugin.py",
    "dags": "pulsar_steward/files/dags",
    "spark_apps/observe.py": "pulsar_steward/files/spark_apps/observe.py",
    "spark_apps/housekeeping.py": "pulsar_steward/files/spark_apps/housekeeping.py",
    **{
        f"docs/{name}": f"pulsar_steward/files/docs/{name}"
        for name in (
            "checks",
            "remediations",
            "kafka.md",
            "knowledge.md",
            "ledger.md",
            "notifications.md",
            "permissions.md",
            "restart.md",
            "start.md",
            "upgrade.md",
            "versions.md",
        )
    },
}
"""A path of the repository, and its place in the wheel."""


class FilesForAirflowAndSpark(BuildHookInterface[Any]):
    """Adds `FILES` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version != "editable":
            build_data["force_include"].update(FILES)
