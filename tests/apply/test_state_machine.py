"""Ledger and apply under whatever may happen, in any order: nothing is changed but what was approved, and once."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lab.simulator import Answer, BrokenJson, Delay, Drop, Fault
from pulsar_steward.ledger.verify import verify_ledger
from tests.apply.happenings import NAMES, RUN_A, RUN_B
from tests.apply.machine import GROUP
from tests.apply.trial import a_trial, impatient_policy

if TYPE_CHECKING:
    from tests.apply.machine import Proposal, Wish

SEEN: Counter[str] = Counter()
"""How often what happened, over all examples of a machine."""

KINDS = ("move", "move", "split", "shop", "ttl", "retention", "raise", GROUP)
WISHES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=4)
HAPPENINGS = st.sampled_from(NAMES)
CRASHES = ("switch 2", "switch 3", "before PUT", "after PUT", "before GET", "after GET", "outcome")
EFFECTS = st.sampled_from(
    (
        *(Answer(status) for status in (200, 204, 401, 404, 409, 412, 429, 500, 503)),
        *(Drop(work_done=True), Drop(work_done=False), BrokenJson(), Delay(0.1)),
    )
)
PATHS = st.sampled_from(("/unload|/split|messageTTL|/retention", "ownedNamespaces", "/lookup", "/admin/v2/"))
FAULTS = st.builds(Fault, EFFECTS, PATHS, times=st.sampled_from((1, 1, None)))


class Remediation(RuleBasedStateMachine):
    """One cluster, its ledger, two runs and everybody who may interfere."""

    proposals: Bundle[Proposal] = Bundle("proposals")

    def __init__(self) -> None:
        super().__init__()
        self.ending = ExitStack()
        self.trial = self.ending.enter_context(a_trial(impatient_policy()))

    def teardown(self) -> None:
        """Ends the simulator, and removes the ledger."""
        SEEN.update(self.trial.seen)
        self.ending.close()

    def approved(self, wishes: list[Wish], *, two: bool) -> Proposal:
        """A plan for the cluster as it is, and the approval of all of it."""
        self.trial.a_good_day()
        proposal = self.trial.recorded(wishes, two=two)
        self.trial.answered(proposal, RUN_A, proposal.step_ids)
        if two:
            self.trial.happens(proposal, "a second person agrees")
        return proposal

    @rule(target=proposals, wishes=WISHES, two=st.booleans(), happening=HAPPENINGS)
    def after_the_approval(self, wishes: list[Wish], happening: str, *, two: bool) -> Proposal:
        """Has one thing happen between an approval and its carrying out."""
        proposal = self.approved(wishes, two=two)
        self.trial.happens(proposal, happening)
        self.trial.carried_out(proposal, RUN_A)
        return proposal

    @rule(target=proposals, wishes=WISHES, midway=HAPPENINGS, two=st.booleans())
    def on_the_way(self, wishes: list[Wish], midway: str, *, two: bool) -> Proposal:
        """Has one thing happen between two steps; afterwards the run tries again."""
        proposal = self.approved(wishes, two=two)
        self.trial.carried_out(proposal, RUN_A, midway=midway)
        self.trial.carried_out(proposal, RUN_A)
        return proposal

    @rule(
        target=proposals,
        wishes=WISHES,
        crash=st.sampled_from(CRASHES),
        happening=st.one_of(st.just("nothing"), HAPPENINGS),
        run=st.sampled_from((RUN_A, RUN_A, RUN_B)),
        waits=st.sampled_from((True, True, False)),
    )
    def after_a_crash(self, wishes: list[Wish], crash: str, happening: str, run: str, *, waits: bool) -> Proposal:
        """The worker dies, something happens, and another one goes on."""
        proposal = self.approved(wishes, two=False)
        self.trial.carried_out(proposal, RUN_A, crash=crash)
        self.trial.happens(proposal, happening)
        if waits:
            self.trial.site.clock.outlive_a_crash()
        self.trial.carried_out(proposal, run)
        return proposal

    @rule(target=proposals, wishes=WISHES, trouble=FAULTS, crash=st.sampled_from(("never", "never", *CRASHES)))
    def in_trouble(self, wishes: list[Wish], trouble: Fault, crash: str) -> Proposal:
        """Brokers answer badly."""
        proposal = self.approved(wishes, two=False)
        self.trial.carried_out(proposal, RUN_A, trouble=trouble, crash=crash)
        return proposal

    @rule(target=proposals, wishes=WISHES, two=st.booleans(), happening=HAPPENINGS)
    def without_an_approval(self, wishes: list[Wish], happening: str, *, two: bool) -> Proposal:
        """A run acts all the same."""
        self.trial.a_good_day()
        proposal = self.trial.recorded(wishes, two=two)
        self.trial.happens(proposal, happening)
        self.trial.carried_out(proposal, RUN_A)
        return proposal

    @rule(proposal=proposals, happening=HAPPENINGS)
    def something_happens(self, proposal: Proposal, happening: str) -> None:
        """To any plan, at any time."""
        self.trial.happens(proposal, happening)

    @rule(proposal=proposals, run=st.sampled_from((RUN_A, RUN_B)), trouble=st.one_of(st.none(), FAULTS))
    def again(self, proposal: Proposal, run: str, trouble: Fault | None) -> None:
        """A run acts on any plan, at any time."""
        self.trial.carried_out(proposal, run, trouble=trouble)

    @invariant()
    def nothing_was_done_that_must_not_be(self) -> None:
        """Holds what the witnesses of all calls saw against what was permitted."""
        assert self.trial.faults == []

    @invariant()
    def the_ledger_names_exactly_what_was_forged(self) -> None:
        """Every row that somebody touched, and no other."""
        found = {(each.damage.value, each.table, each.key) for each in verify_ledger(self.trial.site.engine).tampered}
        assert found == {forged for proposal in self.trial.known for forged in proposal.forged}


SETTINGS = settings(
    max_examples=6,
    stateful_step_count=10,
    phases=[Phase.generate],  # an example that fails is short as it is; making it shorter would take minutes
    database=None,  # the same examples everywhere
    deadline=None,  # a step makes real requests, and some wait for a time limit
    suppress_health_check=[HealthCheck.too_slow],  # for the same reason
)


@pytest.mark.parametrize("number", range(2, 6))
def test_nothing_is_changed_but_what_was_approved_and_once(number: int) -> None:
    """Random sequences of answers, faults, crashes and forgeries lead to no call that was not permitted."""
    SEEN.clear()
    run_state_machine_as_test(seed(number)(type(f"Remediation{number}", (Remediation,), {})), settings=SETTINGS)
    # Its silence would mean nothing, had hardly anything been changed, refused or cut short.
    assert SEEN["calls"] > 10, SEEN
    assert SEEN["shut"] > 5, SEEN
    assert SEEN["ended: Crash"] > 1, SEEN


def test_a_step_that_was_given_up_after_a_call_is_not_looked_into_again() -> None:
    """A move whose target ended after the call fails, and another run of the batch leaves that outcome as it is."""
    with a_trial(impatient_policy()) as trial:
        proposal = trial.recorded([("shop", 0, 0), ("ttl", 0, 0)])
        trial.answered(proposal, RUN_A, proposal.step_ids)
        trial.carried_out(proposal, RUN_A, midway="the second broker ends")
        given_up = trial.site.recorded(proposal.plan)
        trial.carried_out(proposal, RUN_A)
        assert trial.faults == []
        assert given_up == [("b1.s01", "failed"), ("b1.s02", "refused")] == trial.site.recorded(proposal.plan)


def test_of_a_group_only_what_was_not_left_out_is_changed() -> None:
    with a_trial(impatient_policy()) as trial:
        proposal = trial.recorded([(GROUP, 0, 0)])
        trial.approved_but_for_the_first_namespace(proposal, RUN_A)
        trial.carried_out(proposal, RUN_A)
        assert trial.faults == []
        assert trial.site.recorded(proposal.plan) == [("b1.s03", "done"), ("b1.s04", "done")]
        trial.answered(proposal, RUN_B, proposal.step_ids)
        trial.carried_out(proposal, RUN_B)
        assert trial.faults == []
        assert {came_to for _, came_to in trial.site.recorded(proposal.plan)[2:]} == {"refused"}
