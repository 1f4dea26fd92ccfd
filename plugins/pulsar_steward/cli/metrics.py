"""``steward metrics``: findings, questions, steps and halts as numbers, for Prometheus."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pulsar_steward.cli.ledgers import LedgerUrl, named_ledger, opened_ledger
from pulsar_steward.cli.output import STANDARD_OUTPUT, tell
from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.ledger.counts import ledger_counts
from pulsar_steward.policy.place import steward_home
from pulsar_steward.report.metrics import exposition
from pulsar_steward.report.overview import SnapshotSummary, summary_of
from pulsar_steward.snapshots.latest import SnapshotShelf

Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", metavar="NAME", help="Only this cluster; repeatable.  [default: all]"),
]
Snapshots = Annotated[
    str | None,
    typer.Option(
        "--snapshots",
        envvar="STEWARD_SNAPSHOTS",
        show_envvar=True,
        metavar="URI",
        help="The folder of snapshots.  [default: in STEWARD_HOME]",
    ),
]
Output = Annotated[str, typer.Option(metavar="FILE", help="Replaced as a whole; `-`: standard output.")]
OpenMetrics = Annotated[bool, typer.Option("--openmetrics", help="OpenMetrics, in place of Prometheus' text format.")]

_READABLE_BY_COLLECTORS = 0o644


def metrics(
    context: typer.Context,
    *,
    cluster: Clusters = None,
    ledger: LedgerUrl = None,
    snapshots: Snapshots = None,
    output: Output = STANDARD_OUTPUT,
    openmetrics: OpenMetrics = False,
) -> None:
    """Writes the metrics of all clusters, or of some, for Prometheus: to be collected as a file, once a minute."""
    now = datetime.now(UTC)
    shelf = SnapshotShelf(snapshots or str(steward_home() / "snapshots"))
    with opened_ledger(named_ledger(context, ledger), only_read=True) as engine:
        counts = ledger_counts(engine, now)
    names = cluster or sorted({*counts.clusters, *shelf.clusters()})
    text = exposition(counts, {name: _newest(shelf, name) for name in names}, now, openmetrics=openmetrics)
    if output == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
    else:
        _replace(Path(output), text)


def _newest(shelf: SnapshotShelf, cluster: str) -> SnapshotSummary | None:
    """Summary of a cluster's newest diagnosed snapshot; None, and a line on standard error, if it cannot be read."""
    try:
        newest = shelf.diagnosed(cluster)
        return summary_of(newest[0]) if newest else None
    except SnapshotError as error:
        tell(f"{cluster}: {error}", err=True)
        return None


def _replace(file: Path, text: bytes) -> None:
    """Writes a file beside, and renames it: whoever collects it reads the old text or the new one, never a part."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.absolute().parent, prefix=".steward-", delete=False) as made:
            unfinished = Path(made.name)
            try:
                made.write(text)
                made.flush()
                os.fchmod(made.fileno(), _READABLE_BY_COLLECTORS)
                unfinished.rename(file)
            finally:
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--output {file} cannot be written: {error.strerror}") from error
