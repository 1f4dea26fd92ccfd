"""``steward plan``: prints what would be proposed for a cluster, step by step, and why no more is."""

from typing import Annotated

import typer

from pulsar_steward.cli.ledgers import LEDGER, LedgerUrl, is_ledger_known, ledger_to_read
from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.options import Source, snapshot_of
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Outlook
from pulsar_steward.planners.from_snapshot import Moves, moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.load import load_policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.terminal import why_no_more
from pulsar_steward.report.checkup.text import plan_lines

AsJson = Annotated[bool, typer.Option("--json", help="Prints the plan as JSON, in the form that digests are made of.")]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also says why each clear check leads to no remedy.")]


@with_option_groups
def plan(*, source: Source, ledger: LedgerUrl = None, json: AsJson = False, verbose: Verbose = False) -> None:
    """Says what would be proposed, and why it is no more. Records nothing and asks nobody."""
    written = load_policy(source.policy)
    with snapshot_of(source, written) as seen:
        limits = written.for_cluster(seen.meta().cluster)
        moves = Moves()
        if is_ledger_known(ledger):  # bundles in their cooldown are left alone
            with ledger_to_read(ledger) as reader:
                meta = seen.meta()
                moves = moves_before(reader, NamedCluster(meta.cluster, meta.identity), meta.taken_at, limits)
        made = make_plan(planning_facts_of(seen, limits, moves))
        checkup = checkup_of(seen, made, limits)
    if json:
        tell_exactly(made.encoded())
        return
    reasons = list(checkup.planning.reasons if verbose else why_no_more(checkup, verbose=False))
    if not made.batches and not verbose:
        clear, unknown = (checkup.with_outlook(each) for each in (Outlook.CLEAR, Outlook.UNKNOWN))
        reasons.append(
            f"Of {len(checkup.checks)} checks, {len(clear)} are clear and {len(unknown)} could not judge;"
            " --verbose says why, each with its thresholds."
        )
    if not is_ledger_known(ledger):
        reasons.append(
            f"Moves of the last minutes are not known, as no ledger was named (--ledger or {LEDGER}), and none is in"
            " STEWARD_HOME."
        )
    print_lines(plan_lines(made, reasons, width()))
