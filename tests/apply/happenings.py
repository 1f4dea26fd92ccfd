"""Deeds of people, clocks, brokers and forgers to a plan and its cluster, each by its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pulsar_steward.apply.verify import verify
from pulsar_steward.ledger.halts import EVERY_CLUSTER
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.bundles import TC_NAMESPACE
from tests.apply.forging import forgeries
from tests.apply.machine import SHOP
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.apply.machine import Proposal
    from tests.apply.trial import Trial

RUN_A, RUN_B = "pulsar_remediate/a/0", "pulsar_remediate/b/0"

_MINUTES = (7, 61, -31)
_NO_APPROVALS: dict[str, dict[str, Any]] = {
    "is rejected": {"decision": Decision.REJECTED},
    "is snoozed": {"decision": Decision.SNOOZED},
    "is never to be asked": {"decision": Decision.NEVER},
    "is not answered": {"decision": Decision.NO_ANSWER},
    "is answered badly": {"decision": Decision.MALFORMED},
    "is approved by nobody": {"answered_by": " "},
    "is approved for other steps": {"digest": "0" * 64},
    "is approved for another text": {"asked_digest": "0" * 64},
    "is approved without an end": {"expires_at": None},
}


def _as_said(trial: Trial, proposal: Proposal) -> dict[str, Callable[[], object]]:
    """Answers of people, and what else they say."""
    steps, answered = proposal.step_ids, partial(trial.answered, proposal)
    return {
        **{name: partial(answered, RUN_A, steps, permits=False, **said) for name, said in _NO_APPROVALS.items()},
        "is approved again": lambda: answered(RUN_A, steps),
        "is approved in part": lambda: answered(RUN_A, steps[:1]),
        "is approved but for a namespace": lambda: trial.approved_but_for_the_first_namespace(proposal, RUN_A),
        "is approved in another run": lambda: answered(RUN_B, steps),
        "a second person agrees": lambda: answered(RUN_A, steps, voice=2, answered_by="bob"),
        "a second person agrees to the last step": lambda: answered(RUN_A, steps[-1:], voice=2, answered_by="bob"),
        "the same person agrees twice": lambda: answered(RUN_A, steps, voice=2),
        "a second person rejects": lambda: answered(
            RUN_A, steps, permits=False, voice=2, answered_by="bob", decision=Decision.REJECTED
        ),
        "another run takes the answers": lambda: trial.taken_by_another(proposal, RUN_A),
        "its question ends": lambda: trial.ended(proposal),
        "is confirmed": lambda: trial.confirmed(proposal),
        "is superseded": lambda: trial.superseded(proposal, [("ttl", 0, 0)]),
        "all is halted": lambda: trial.said(EVERY_CLUSTER, halted=True),
        "this is halted": lambda: trial.said(CLUSTER, halted=True),
        "is proved": lambda: _prove(trial, proposal),
    }


def _as_done(trial: Trial, proposal: Proposal) -> dict[str, Callable[[], object]]:
    """Deeds to the cluster, the clock and the ledger."""
    clock, truth, brokers = trial.site.clock, trial.truth, trial.site.brokers
    return {
        **{f"{minutes} minutes pass": partial(clock.advance, minutes=minutes) for minutes in _MINUTES},
        **{f"forged: {how}": partial(trial.forged, proposal, how, RUN_A) for how in forgeries(RUN_A)},
        "somebody takes the coordinators": lambda: truth.somebody_takes_the_coordinators(trial.living),
        "somebody sets a TTL": lambda: truth.somebody_sets_a_ttl(SHOP, 30),
        "somebody raises the number of coordinators": truth.somebody_raises_the_number_of_coordinators,
        "the first broker dies": lambda: trial.ends(brokers[0], killed=True),
        "the second broker dies": lambda: trial.ends(brokers[1], killed=True),
        "the second broker ends": lambda: trial.ends(brokers[1], killed=False),
        "clients come": lambda: truth.clients_come(TC_NAMESPACE, SHOP),
    }


def happenings(trial: Trial, proposal: Proposal) -> dict[str, Callable[[], object]]:
    """All that may happen to a plan, or while it is carried out."""
    return {"nothing": int, **_as_said(trial, proposal), **_as_done(trial, proposal)}


def _prove(trial: Trial, proposal: Proposal) -> None:
    with trial.site.context(RUN_A) as context:
        verify(context, proposal.plan.plan_id, "b1")


NAMES = (
    "nothing",
    *_NO_APPROVALS,
    *("is approved again", "is approved in part", "is approved but for a namespace"),
    *("is approved in another run", "a second person agrees"),
    *("a second person agrees to the last step", "the same person agrees twice", "a second person rejects"),
    *("another run takes the answers", "its question ends", "is confirmed", "is superseded"),
    *("all is halted", "this is halted", "is proved"),
    *(f"{minutes} minutes pass" for minutes in _MINUTES),
    *(f"forged: {how}" for how in forgeries(RUN_A)),
    *("somebody takes the coordinators", "somebody sets a TTL", "clients come"),
    "somebody raises the number of coordinators",
    *("the first broker dies", "the second broker dies", "the second broker ends"),
)
"""The names, in order of `happenings`."""
