"""Change of a namespace isolation policy: set or deleted by one call that unloads nothing, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import ApprovalWarning, Aspect, Before, ChangeKind, Drifted, Inverse, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.isolation import IsolationPolicy, policy_in_words
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import SetIsolation
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ClusterReader, Subject
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.pulsar.calls import Call

STAYS = "bundles stay where they are"


class BeforeIsolation(Before, frozen=True):
    """Former policy; None: there was none of this name."""

    policy: IsolationPolicy | None


class IsolationChange(ChangeKind[SetIsolation, BeforeIsolation]):
    """Change of one isolation policy to another one, or to none."""

    undoable = True
    loses_messages = False
    disturbs = None
    aspects = frozenset({Aspect.ISOLATION})
    operation = Operation.SET_ISOLATION
    before_type = BeforeIsolation

    @property
    def subject(self) -> Subject:
        """The policy."""
        return self.change.policy, "isolation policy"

    @property
    def name(self) -> str:
        """The policy with its name."""
        return f"isolation policy {self.change.policy}"

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0: nothing is unloaded, so no client has to reconnect."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeIsolation:
        """The policy to restore later; if it differs from the plan's, somebody changed it since."""
        now = self._now(cluster)
        if now != self.change.before:
            then = policy_in_words(self.change.before)
            raise Drifted(f"the {self.name} is {policy_in_words(now)}, not {then} as when this was planned")
        return BeforeIsolation(policy=now)

    def call(self) -> Call:
        """Sets the new policy with the scope that unloads nothing, or deletes it."""
        change = self.change
        if change.after is None:
            return calls.delete_isolation(change.pulsar_cluster, change.policy)
        return calls.set_isolation(change.pulsar_cluster, change.policy, change.after)

    def completion(self, before: BeforeIsolation) -> Call | None:
        """None: the call is sufficient."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """The present policy; never `untouched`, as somebody may have set the former one again since."""
        now = self._now(cluster)
        return Observation(
            there=now == self.change.after,
            untouched=False,
            words=f"the {self.name} is {policy_in_words(now)}",
            values={"policy": msgspec.to_builtins(now)},
        )

    def inverse(self, before: BeforeIsolation, cluster: ClusterReader) -> Inverse:
        """The change to the former policy, if the cluster still has the one that Steward set."""
        made, now = self.change, self._now(cluster)
        former, then = policy_in_words(before.policy), policy_in_words(made.after)
        if now != made.after:
            raise Refused(
                f"somebody changed the {self.name}: it is {policy_in_words(now)}, and is left as it is. Steward had"
                f" made it {then}; before that, it was {former}"
            )
        back = msgspec.structs.replace(made, before=made.after, after=before.policy)
        return Inverse(
            change=back,
            made=f"changed the {self.name} from {former} to {then}",
            effect=f"the {self.name} is {former}, as it was before; {STAYS} until they are unloaded",
            undo=back.inverse,
            undo_note=f"Set it once more, with `--unload-scope none`: {then}.",
        )

    def describe(self) -> str:
        """Both policies."""
        change = self.change
        return f"{self.name}: {policy_in_words(change.before)} → {policy_in_words(change.after)}"

    def warning(self, loss: Loss | None) -> ApprovalWarning | None:
        """Brokers that other namespaces lose; None where none is added."""
        change = self.change
        taken = set(change.after.primary if change.after else ()) - set(change.before.primary if change.before else ())
        if not taken:
            return None
        return ApprovalWarning(
            headline="keeps other namespaces from the group's brokers",
            subject=f"the {self.name}",
            words=(
                "a namespace that no isolation policy names gets no bundle on these brokers any more. Its bundles that"
                " are there stay until they are unloaded, and are loaded elsewhere then"
            ),
        )

    def _now(self, cluster: ClusterReader) -> IsolationPolicy | None:
        return cluster.isolation_policies().get(self.change.policy)
