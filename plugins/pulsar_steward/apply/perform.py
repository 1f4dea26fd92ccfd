"""One call and its proof: sends it once, then reads the cluster until it shows the change or the time is up."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_not_result, wait_exponential

from pulsar_steward.apply.clearance import Completion
from pulsar_steward.apply.context import Result
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Beside
from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    Conflict,
    LeaseLost,
    LedgerError,
    NeverSent,
    NotAcceptable,
    NotFound,
    Precondition,
    RedirectRefused,
    Refused,
    ServerError,
    TimedOut,
    Unreachable,
)
from pulsar_steward.ledger.rows import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

    from pulsar_steward.apply.clearance import Clearance
    from pulsar_steward.apply.context import ApplyContext
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.changes.kind import Before, ChangeKind, Observation
    from pulsar_steward.model.step import Change

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_SAY_EVERY_SECONDS = 5.0
_STEADY_SECONDS = 5.0
"""Time after which an accepted change counts as taken back, if every read in between shows it so.

Both load managers respond to a move once the bundle is unloaded. A broker's view may lag a moment, but not 5 s.
"""


def perform(context: ApplyContext, kind: ChangeKind[Any, Any], before: Before, clearance: Clearance) -> Result:
    """Makes a change whose intent is recorded, and proves it.

    Args:
        context: The cluster and the policy.
        kind: The change.
        before: The recorded values before it.
        clearance: Checked right before the call leaves.

    Raises:
        LedgerError: If the ledger cannot be used; the next try reads the result from the cluster.
    """
    try:
        return _performed(context, kind, before, clearance)
    except LedgerError:
        raise
    except Exception as error:
        # Any error here: a call may have been made, so there has to be an outcome.
        log.exception("unexpected, with a call under way")
        return Result(outcome=Outcome.UNKNOWN, reason=unexpected(error))


def unexpected(error: Exception) -> str:
    """Reason to record for an unexpected error, in place of a call's result."""
    return f"a call may have been made, and then: {type(error).__name__}: {error}; look at it yourself"


def _performed(context: ApplyContext, kind: ChangeKind[Any, Any], before: Before, clearance: Clearance) -> Result:
    doubt: AdminError | None = None
    try:
        context.writer.send(kind.call(), clearance.require)
    except (Refused, LeaseLost) as error:
        return Result(outcome=Outcome.REFUSED, reason=f"nothing was sent: {error}")
    except (Conflict, NotAcceptable, NotFound, Precondition) as error:
        return _refused(context, kind, Result(outcome=Outcome.DRIFTED, reason=f"the cluster moved on: {error}"), error)
    except NeverSent as error:
        return Result(outcome=Outcome.FAILED, reason=f"nothing was sent: {error}")
    except (TimedOut, Unreachable, BrokenAnswer, RedirectRefused, ServerError) as error:
        log.warning("whether the call had an effect is not known, looking: %s", error)
        doubt = error
    except AdminError as error:
        return _refused(context, kind, Result(outcome=Outcome.FAILED, reason=str(error)), error)
    observation = wait_for(context, kind, before, enough=_WentAnotherWay(accepted=doubt is None))
    return result_of(observation, doubt)


def _refused(context: ApplyContext, kind: ChangeKind[Any, Any], refused: Result, error: AdminError) -> Result:
    """Result of a refused call. Where such a call can fail half way, the cluster is read first."""
    if not kind.breaks_off:
        return refused
    try:
        seen = kind.observe(context.reader)
    except AdminError as unread:
        return result_of(unread, error)
    if seen.broken_off:
        return Result(outcome=Outcome.UNKNOWN, reason=f"{seen.words} (the call: {error})", values=seen.values)
    return refused if seen.untouched else Result(outcome=Outcome.DRIFTED, reason=f"the cluster moved on: {error}")


@dataclass
class _WentAnotherWay:
    """True for an observation that proves that Pulsar moved a bundle elsewhere or back.

    Attributes:
        accepted: True if the broker accepted the call. If not, it may still take effect; its former state is no proof.
    """

    accepted: bool
    _taken_back_since: float | None = None

    def __call__(self, seen: Observation) -> bool:
        if seen.continuation is not None:
            return True
        if seen.retry is None or not self.accepted:
            self._taken_back_since = None
            return False
        now = time.monotonic()
        if self._taken_back_since is None:
            self._taken_back_since = now
        return now - self._taken_back_since >= _STEADY_SECONDS


def result_of(observation: Observation | AdminError, doubt: AdminError | None) -> Result:
    """Result of a call, from the last observation of its change, and the error that left the call in doubt."""
    said = f" (the call: {doubt})" if doubt else ""
    if isinstance(observation, AdminError):
        reason = f"the cluster could not be read to see what happened: {observation}{said}"
        return Result(outcome=Outcome.UNKNOWN, reason=reason)
    if observation.there:
        return Result(outcome=Outcome.DONE, reason=observation.words + said, values=observation.values)
    if doubt is not None:
        reason = f"{observation.words}; it may still take effect{said}"
        return Result(outcome=Outcome.UNKNOWN, reason=reason, values=observation.values)
    reason = f"the broker accepted the call, yet {observation.words}"
    return Result(
        outcome=Outcome.FAILED,
        reason=reason,
        values=observation.values,
        continuation=observation.continuation or observation.retry,
    )


def looked_beside(change: Change, before: dict[str, Any], reader: LiveReader) -> list[Beside]:
    """Other things that are not as they were right before the call of a change, or that they cannot be looked at.

    Args:
        change: The change.
        before: State before its call, as recorded.
        reader: Reads the cluster.
    """
    kind = kind_of(change)
    try:
        return list(kind.beside(kind.recorded(before), reader))
    except AdminError as error:
        return [Beside(f"whether the call changed anything else cannot be looked at: {error}", lost=None)]


def wait_for(
    context: ApplyContext,
    kind: ChangeKind[Any, Any],
    before: Before,
    *,
    enough: Callable[[Observation], bool] = lambda _: False,
    seconds: float | None = None,
) -> Observation | AdminError:
    """Observes a change until it is there, `enough` is true, or the time is up; returns the last observation.

    A halt does not end it: a call is under way, and its outcome has to be recorded. Without the wait the outcome would
    be `unknown`, and the bundle might stay unloaded, which is worse than a moved one.

    Args:
        context: The cluster and the policy.
        kind: The change.
        before: The recorded values before the change.
        enough: True for an observation that will not change any more.
        seconds: The time limit; None: the policy's `apply.proof_timeout_seconds`.
    """
    patience = context.policy.apply.proof_timeout_seconds if seconds is None else seconds
    said = 0.0

    def settled(seen: Observation | AdminError) -> bool:
        return not isinstance(seen, AdminError) and (seen.there or enough(seen))

    def say(state: RetryCallState) -> None:
        nonlocal said
        gone = state.seconds_since_start or 0.0
        if gone - said >= _SAY_EVERY_SECONDS and state.outcome:
            said, last = gone, state.outcome.result()
            words = str(last) if isinstance(last, AdminError) else last.words
            log.info("waiting for the brokers to show it, %.0f of %.0f s: %s", gone, patience, words)

    def over(state: RetryCallState) -> bool:
        return max(state.seconds_since_start or 0.0, state.idle_for) >= patience

    looking = Retrying(
        retry=retry_if_not_result(settled),
        stop=over,
        wait=wait_exponential(multiplier=_FIRST_PAUSE_SECONDS, exp_base=1.5, max=_LONGEST_PAUSE_SECONDS),
        sleep=context.rest,
        before_sleep=say,
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    return looking(_look_once, context, kind, before, Completion(context, patience))


def _look_once(
    context: ApplyContext, kind: ChangeKind[Any, Any], before: Before, completion: Completion
) -> Observation | AdminError:
    call = kind.completion(before)
    try:
        if call is not None:
            context.writer.send(call, completion.require)
    except (AdminError, Refused) as error:
        log.info("not yet: %s", error)
    try:
        return kind.observe(context.reader)
    except AdminError as error:
        log.info("cannot look: %s", error)
        return error
