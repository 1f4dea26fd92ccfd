"""``steward metrics``: findings, questions, steps and halts as numbers, for Prometheus."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pulsar_steward.cli.ledgers import LedgerUrl, opened_ledger
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.output import STANDARD_OUTPUT, tell, written_whole
from pulsar_steward.cli.paths import SNAPSHOTS, snapshots_uri
from pulsar_steward.errors import SnapshotError
from pulsar_steward.ledger.counts import ledger_counts
from pulsar_steward.report.checkup.compose import troubles_shown
from pulsar_steward.report.checkup.document import TroubleReport
from pulsar_steward.report.metrics import exposition
from pulsar_steward.report.overview import SnapshotSummary, summary_of
from pulsar_steward.snapshots.latest import SnapshotShelf

Clusters = Annotated[list[str] | None, option("NAME", "Only this cluster; repeatable.  [default: all]", "--cluster")]
Snapshots = Annotated[
    str | None,
    typer.Option(
        "--snapshots",
        envvar=SNAPSHOTS,
        show_envvar=True,
        metavar="URI",
        help="The folder of snapshots.  [default: in STEWARD_HOME]",
    ),
]
Output = Annotated[str, option("FILE", "Replaced as a whole; `-`: standard output.")]
OpenMetrics = Annotated[bool, typer.Option("--openmetrics", help="OpenMetrics, in place of Prometheus' text format.")]

_READABLE_BY_COLLECTORS = 0o644


def metrics(
    *,
    cluster: Clusters = None,
    ledger: LedgerUrl = None,
    snapshots: Snapshots = None,
    output: Output = STANDARD_OUTPUT,
    openmetrics: OpenMetrics = False,
) -> None:
    """Writes the metrics of all clusters, or of some, for Prometheus: to be collected as a file, once a minute."""
    now = datetime.now(UTC)
    shelf = SnapshotShelf(snapshots_uri(snapshots))
    with opened_ledger(ledger, only_read=True) as engine:
        counts = ledger_counts(engine, now, shelf.clusters())
        names = cluster or sorted(counts.clusters)
    found = {name: _newest(shelf, name) for name in names}
    summaries = {name: each and each.summary for name, each in found.items()}
    troubles = {name: each.troubles for name, each in found.items() if each}
    text = exposition(counts, summaries, troubles, now, openmetrics=openmetrics)
    if output == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
    else:
        with written_whole(Path(output), named=f"--output {output}", mode=_READABLE_BY_COLLECTORS) as target:
            target.write(text)


class Newest(NamedTuple):
    """A cluster's newest diagnosed snapshot."""

    summary: SnapshotSummary
    troubles: tuple[TroubleReport, ...]


def _newest(shelf: SnapshotShelf, cluster: str) -> Newest | None:
    """The newest diagnosed snapshot; None, and a line on standard error, if it cannot be read."""
    try:
        newest = [Newest(summary_of(each), troubles_shown(each)) for each in shelf.diagnosed(cluster)]
    except SnapshotError as error:
        tell(f"{cluster}: {error}", err=True)
        return None
    return newest[0] if newest else None
