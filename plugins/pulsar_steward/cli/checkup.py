"""``steward checkup``: diagnoses a cluster, prints a report, and changes nothing."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pulsar_steward.cli.access import ClusterAccess, options_given
from pulsar_steward.cli.option_groups import option, with_option_groups
from pulsar_steward.cli.options import Source, folder_for, snapshot_of
from pulsar_steward.cli.output import STANDARD_OUTPUT, print_lines, progress, tell, width, written_whole
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.logs.entries import require_file
from pulsar_steward.logs.reading import read_logs
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.document import Checkup, as_json
from pulsar_steward.report.checkup.terminal import lines as terminal_lines
from pulsar_steward.snapshots.read import Snapshot

if TYPE_CHECKING:
    from pulsar_steward.report.checkup.fleet import FleetCheckup

HtmlFile = Annotated[str | None, option("OUT", "Writes a page, complete in itself; `-` as for --json.", "--html")]
JsonFile = Annotated[str | None, option("OUT", "Writes JSON; `-`: to standard output, in place of text.", "--json")]
Logs = Annotated[
    list[str] | None,
    option("FILE...", "Logs and thread dumps of brokers, bookies, ZooKeeper, read as well; also .gz.", "--logs"),
]
MoreLogs = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Further files of --logs.")]
Since = Annotated[
    str | None,
    option(
        "SPAN",
        "Tells what is new, worse or gone since then, such as 8h, by kept snapshots.",
        "--since",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tells every finding, and why each check is clear.")]


class FleetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which fleet is looked at, if one is, and how."""

    fleet: Annotated[str | None, option("FILE", "Looks at several: those of a file, or Airflow's `connections`.")] = (
        None
    )
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", min=1, help="Clusters of --fleet side by side.")] = 4
    seconds: Annotated[
        int, typer.Option("--seconds", metavar="N", min=1, help="Time limit for each cluster of --fleet.")
    ] = 600


@with_option_groups
def checkup(
    more_logs: MoreLogs = None,
    *,
    source: Source,
    html: HtmlFile = None,
    json: JsonFile = None,
    logs: Logs = None,
    since: Since = None,
    several: FleetOptions,
    verbose: Verbose = False,
) -> None:
    """Looks at a cluster and says what is wrong. Exit code: 0 healthy, 1 findings, 2 could not look."""
    written = load_policy(source.policy)
    _check_places({"--html": html, "--json": json})
    if several.fleet is not None:
        _refuse_beside_fleet(source, {"--html": html, "--logs": logs, "--since": since})
        whole = _looked_at_fleet(several, several.fleet, source, written)
        _tell_fleet(whole, several.fleet, json, verbose=verbose)
        raise typer.Exit(whole.outcome.exit_code)
    files = _log_files(logs, more_logs)
    back = None if since is None else _span_of(since)
    with snapshot_of(source, written) as seen:
        made = _composed(seen, written.for_cluster(seen.meta().cluster), files, source.access)
        if back is not None:
            made = _compared(made, seen, back)
    if html:
        from pulsar_steward.report.checkup.html import as_html  # templates, which only a page needs

        _write(html, as_html(made))
    if json:
        _write(json, as_json(made))
    if STANDARD_OUTPUT not in {html, json}:
        print_lines(terminal_lines(made, width(), verbose=verbose))
    raise typer.Exit(made.outcome.exit_code)


def _looked_at_fleet(options: FleetOptions, fleet: str, source: Source, policy: Policy) -> "FleetCheckup":
    from pulsar_steward.cli.fleet import each_once, ends_in, members_of, side_by_side
    from pulsar_steward.report.checkup.fleet import fleet_checkup

    members = members_of(fleet, policy)
    with folder_for(source.keep) as folder:
        given = {"--policy": source.policy, "--keep": folder}
        arguments = [word for name, path in given.items() if path is not None for word in (name, str(path))]
        with progress() as say:
            looked = side_by_side(members, arguments, options.at_once, options.seconds, say)
        order = [each.name for each in members]
        clusters = each_once(folder, sorted(looked, key=lambda each: order.index(each.cluster)), members)
        made = fleet_checkup(clusters, ends_in(folder, clusters))
    if source.keep:
        tell(f"the snapshots are kept below {source.keep}", err=True)
    return made


def _tell_fleet(made: "FleetCheckup", fleet: str, json: str | None, *, verbose: bool) -> None:
    from pulsar_steward.report.checkup.fleet_terminal import fleet_lines

    if json:
        _write(json, as_json(made))
    if json != STANDARD_OUTPUT:
        print_lines(fleet_lines(made, fleet, width(), verbose=verbose))


def _refuse_beside_fleet(source: Source, others: Mapping[str, object]) -> None:
    """Refuses options that are about one cluster.

    Raises:
        ConfigurationError: If one is given.
    """
    about_one = {
        "--admin-url": source.admin_url,
        "--kafka": source.kafka,
        "--kafka-config": source.kafka_config,
        "--snapshot": source.snapshot,
        "--cluster": source.cluster,
        "--master": source.master,
        **dict.fromkeys(sorted(options_given(source.access)), True),
        **others,
    }
    if strange := next((name for name, value in about_one.items() if value), None):
        raise ConfigurationError(
            f"{strange} is about one cluster, and --fleet looks at several: leave it out. For more of one of them keep"
            " the snapshots by --keep DIR, and report on its own by --snapshot URI"
        )


def _composed(seen: Snapshot, thresholds: Policy, files: list[Path], access: ClusterAccess) -> Checkup:
    """The report, by modules that are loaded once the cluster was read: nobody waits for them to see the first line."""
    from pulsar_steward.planners.from_snapshot import Moves, plan_without_steps, planning_facts_of
    from pulsar_steward.planners.registry import make_plan
    from pulsar_steward.report.checkup.compose import checkup_of, judged_at

    plan, logs = plan_without_steps(seen, thresholds), None
    if plan is None:
        plan = make_plan(planning_facts_of(seen, thresholds, Moves()))
    if files:
        with progress() as say:
            logs = read_logs(files, access.secrets(), say)
    return judged_at(checkup_of(seen, plan, thresholds, logs), datetime.now(UTC))


def _span_of(since: str) -> timedelta:
    from pulsar_steward.report.since import span_of

    return span_of(since)


def _compared(made: Checkup, seen: Snapshot, back: timedelta) -> Checkup:
    """The report with the difference from an earlier snapshot beside this one."""
    from pulsar_steward.errors import SnapshotError
    from pulsar_steward.report.since import since_look

    try:
        found = since_look(seen, back)
    except SnapshotError as error:  # the look itself is what counts
        tell(f"--since: nothing is compared: {error}", err=True)
        return made
    if found is None:
        tell(
            f"--since: no earlier snapshot of {made.about.cluster} lies beside this one: keep each look by --keep DIR,"
            " always the same, or read one that pulsar_observe took by --snapshot",
            err=True,
        )
    return msgspec.structs.replace(made, since=found)


def _log_files(first: list[str] | None, more: list[str] | None) -> list[Path]:
    """Files with logs, checked before the cluster is read and not after it."""
    if more and not first:
        raise ConfigurationError(f"got unexpected extra argument ({more[0]}): files are given by --logs")
    files = [Path(file) for file in (*(first or ()), *(more or ()))]
    for file in files:
        require_file(file)
    return files


def _check_places(places: dict[str, str | None]) -> None:
    """Checks that the reports can be written, before the cluster is read and not after it."""
    if len(places) == list(places.values()).count(STANDARD_OUTPUT):
        raise ConfigurationError(
            f"{' and '.join(places)} cannot both go to standard output: name a file for one of them"
        )
    for name, place in places.items():
        if place in {None, STANDARD_OUTPUT}:
            continue
        path = Path(str(place))
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ConfigurationError(f"{name} {place}: name a file in a folder that is there")


def _write(place: str, text: str) -> None:
    if place == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        return
    with written_whole(Path(place), named=place) as target:
        target.write(text.encode())
    tell(f"written: {place}", err=True)
