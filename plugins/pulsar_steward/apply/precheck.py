"""Last check before a change, for dry and real runs alike: the guards, then the values that it will replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.apply.context import Result
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Before, Drifted
from pulsar_steward.errors import AdminError, ConfigurationError, InvalidName, Refused
from pulsar_steward.guards.evaluate import objection_to
from pulsar_steward.ledger.rows import Outcome

if TYPE_CHECKING:
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.changes.kind import ChangeKind
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy


def look_before(reader: LiveReader, step: Step, facts: ClusterFacts, policy: Policy) -> Before | Result:
    """The live values that a step replaces, or its result if it must not be done.

    Args:
        reader: Reads the cluster.
        step: The step.
        facts: Facts right before it.
        policy: Thresholds and limits.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    try:
        objection = objection_to(step, facts, policy)
        if objection is not None:
            return Result(outcome=Outcome(objection[0].value), reason=objection[1])
        kind = kind_of(step.change)
        before: Before = kind.record(reader)
        _require_callable(kind, before)
    except Drifted as drift:
        return Result(outcome=Outcome.DRIFTED, reason=str(drift))
    except Refused as refusal:
        return Result(outcome=Outcome.REFUSED, reason=str(refusal))
    except InvalidName as error:
        return Result(outcome=Outcome.REFUSED, reason=f"it cannot be called: {error}")
    except (AdminError, ConfigurationError) as error:
        return Result(outcome=Outcome.REFUSED, reason=f"the cluster could not be looked at first: {error}")
    return before


def _require_callable(kind: ChangeKind[Any, Any], before: Before) -> None:
    """Checks that names from outside make valid paths, before any call is made.

    Raises:
        InvalidName: If a name does not.
    """
    kind.call()
    kind.completion(before)
