"""``steward doctor``: checks everything that Steward needs, and prints a remedy for each problem."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from pulsar_steward.cli.access import ChangeOptions, ClusterAccess, options_given
from pulsar_steward.cli.doctor.asking import asking_lines
from pulsar_steward.cli.doctor.cluster import cluster_lines, seen_cluster
from pulsar_steward.cli.doctor.here import (
    home_lines,
    ledger_lines,
    package_lines,
    policy_lines,
    secrets_lines,
    spark_lines,
)
from pulsar_steward.cli.doctor.line import Line, LineState, exit_code, of_error
from pulsar_steward.cli.doctor.names import halt_lines, name_lines
from pulsar_steward.cli.doctor.recipients import events_lines, recipient_lines
from pulsar_steward.cli.ledgers import LedgerUrl
from pulsar_steward.cli.option_groups import option, with_option_groups
from pulsar_steward.cli.options import AdminUrls, ClusterName, PolicyFile
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.cli.snapshot import Target, settings_of
from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.model.units import counted
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import steward_version
from pulsar_steward.report.checkup.text import STYLES, fitting, wrapped

EventsUrl = Annotated[str | None, option("URL", "Where events go, such as pulsar+ssl://broker:6651.", "--events-url")]
WithSpark = Annotated[
    bool, typer.Option("--spark", help="Java and Spark are wanted here, as where Airflow's tasks run.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints JSON in place of text.")]

SHOWN = {
    LineState.OK: ("OK", "clear"),
    LineState.PROBLEM: ("PROBLEM", "critical"),
    LineState.UNKNOWN: ("UNKNOWN", "unknown"),
}
COLUMNS = 9


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Document that ``--json`` prints.

    Attributes:
        version: Version of this document's format; incremented when a field is removed or changes its meaning.
        steward_version: Steward's version.
        exit_code: Exit code of the command.
        lines: Results of the checks.
    """

    version: int = 1
    steward_version: str
    exit_code: int
    lines: tuple[Line, ...]


@with_option_groups
def doctor(  # noqa: PLR0913 - one for each option that other commands have not
    *,
    admin_url: AdminUrls = None,
    access: ClusterAccess,
    change: ChangeOptions,
    cluster: ClusterName = None,
    policy: PolicyFile = None,
    ledger: LedgerUrl = None,
    events_url: EventsUrl = None,
    spark: WithSpark = False,
    json: AsJson = False,
) -> None:
    """Says what is missing before Steward can look or act. Exit code: 0 nothing, 1 something, 2 could not look."""
    target, seen = None, None
    if admin_url:
        limits = Policy()  # of an invalid policy, which a line of its own reports
        with suppress(PolicyError):
            limits = load_policy(policy)
        target = Target(urls=tuple(admin_url), access=access, cluster=cluster, policy=limits)
        with suppress(ConfigurationError):  # a line about the cluster says so
            seen = seen_cluster(settings_of(target), cluster) if cluster else None
    else:  # whoever gives options about a cluster takes them for checked
        given = {*options_given(access), *options_given(change), *(["--cluster"] if cluster else [])}
        if strange := sorted(given - ({"--ca-file"} if events_url else set())):
            raise ConfigurationError(f"{strange[0]} is about a cluster, and none is asked: name it by --admin-url")
    lines = [*home_lines(), *secrets_lines(), *policy_lines(policy), *ledger_lines(ledger, seen)]
    lines += [*asking_lines(ledger), *name_lines(policy, ledger), *halt_lines(ledger), *recipient_lines(policy, ledger)]
    if target:
        lines = [*_cluster(target, change), *lines]
    if events_url:
        lines += events_lines(events_url, access.ca_file)
    lines += package_lines()
    if spark:
        lines += spark_lines()
    report = Report(steward_version=steward_version(), exit_code=exit_code(lines), lines=tuple(lines))
    if json:
        tell_exactly(msgspec.json.encode(report))
    else:
        print_lines(_text(report, fitting(width()), asked=bool(admin_url)))
    raise typer.Exit(report.exit_code)


def _cluster(target: Target, change: ChangeOptions) -> Iterator[Line]:
    """Lines about a cluster, as it is looked at and as it is changed; invalid settings are a line too."""
    try:
        changed = None
        if change.is_given():
            urls = tuple(change.change_admin_url or target.urls)
            changed = settings_of(msgspec.structs.replace(target, urls=urls, access=change.after(target.access)))
        yield from cluster_lines(settings_of(target), changed, tried_here=target.policy.guards.versions_tried_here)
    except ConfigurationError as error:
        yield of_error("how to reach it", error)


def _text(report: Report, columns: int, *, asked: bool) -> Iterator[Text]:
    for line in report.lines:
        mark, style = SHOWN[line.state]
        yield from wrapped(f"{line.subject}: {line.words}", columns, first=Text(mark, STYLES[style]), indent=COLUMNS)
        if line.remedy:
            end = "" if line.remedy.endswith("?") else "."
            yield from wrapped(f"Remedy: {line.remedy}{end}", columns, indent=COLUMNS)
    if not asked:
        yield from wrapped("No cluster was asked: name one by --admin-url, such as http://broker:8080.", columns)
    yield Text()
    states = [line.state for line in report.lines]
    problems, unknown = states.count(LineState.PROBLEM), states.count(LineState.UNKNOWN)
    well, troubles = f"all {counted(len(states), 'line')} are fine", counted(problems, "problem")
    yield Text(f"RESULT: {f'{troubles}, {unknown} could not be looked at' if problems + unknown else well}")
