"""Change of a namespace isolation policy: set or deleted by one call that unloads nothing, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import (
    ApprovalWarning,
    Aspect,
    Before,
    Beside,
    ChangeKind,
    Drifted,
    Inverse,
    Observation,
    changed_since,
)
from pulsar_steward.model.isolation import (
    IsolationPolicy,
    Reach,
    difference_in_brief,
    in_brief,
    policies_in_words,
    policy_in_words,
)
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import SetIsolation
from pulsar_steward.model.units import counted, named
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.changes.kind import ClusterReader, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call

STAYS = "bundles stay where they are"
NO_POLICY = IsolationPolicy()
MAX_IN_HEADLINE = 2
"""Losses that the headline of a warning names, or else the first one alone; its sentences tell all."""


class BeforeIsolation(Before, frozen=True):
    """Former policy, None if there was none of this name; and all others, which brokers write as one with it."""

    policy: IsolationPolicy | None
    others: dict[str, IsolationPolicy] = msgspec.field(default_factory=dict)


class IsolationChange(ChangeKind[SetIsolation, BeforeIsolation]):
    """Change of one isolation policy to another one, or to none."""

    undoable = True
    loses_messages = False
    disturbs = None
    aspects = frozenset({Aspect.ISOLATION})
    before_type = BeforeIsolation

    @property
    def subject(self) -> Subject:
        """The policy."""
        return self.change.policy, "isolation policy"

    @property
    def name(self) -> str:
        """The policy with its name."""
        return f"isolation policy {self.change.policy}"

    @property
    def operation(self) -> Operation | None:
        """Setting needs the scope; deleting needs none, and unloads nothing on any version."""
        return None if self.change.after is None else Operation.SET_ISOLATION

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0: nothing is unloaded, so no client has to reconnect."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeIsolation:
        """All policies; if this one differs from the plan's, somebody changed it since."""
        others = dict(cluster.isolation_policies())
        present = others.pop(self.change.policy, None)
        if present != self.change.before:
            now, then = policies_in_words(present, self.change.before)
            raise Drifted(f"the {self.name} is {now}, not {then} as when this was planned")
        return BeforeIsolation(policy=present, others=others)

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
        present = self._now(cluster)
        now, _ = policies_in_words(present, self.change.after)
        return Observation(
            there=present == self.change.after,
            untouched=False,
            words=f"the {self.name} is {now}",
            values={"policy": msgspec.to_builtins(present)},
        )

    def beside(self, before: BeforeIsolation, cluster: ClusterReader) -> Iterator[Beside]:
        """Other policies that are lost or changed: of two changes at the same moment, brokers may keep one."""
        present = cluster.isolation_policies()
        for name, policy in before.others.items():
            if name not in present:
                text = msgspec.json.encode(policy).decode()
                yield Beside(
                    f"the isolation policy {name}, which was there right before the call, is lost, or somebody deleted"
                    f" it; to put it back, set it with `unload_scope` `none`: {text}",
                    lost=True,
                )
            elif present[name] != policy:
                then, now = policies_in_words(policy, present[name])
                yield Beside(f"meanwhile the isolation policy {name} was changed from {then} to {now}", lost=False)

    def inverse(self, before: BeforeIsolation, cluster: ClusterReader) -> Inverse:
        """The change to the former policy, if the cluster still has the one that Steward set."""
        made, present = self.change, self._now(cluster)
        former, then, now = policies_in_words(before.policy, made.after, present)
        if present != made.after:
            raise changed_since(
                f"the {self.name}", now, "deleted it" if made.after is None else f"made it {then}", former
            )
        back = msgspec.structs.replace(made, before=made.after, after=before.policy)
        return Inverse(
            change=back,
            made=f"changed the {self.name} from {former} to {then}",
            effect=f"the {self.name} is {former}, as it was before; {STAYS} until they are unloaded",
            undo=back.inverse,
            undo_note=by_hand(back),
        )

    def describe(self) -> str:
        """Both policies."""
        before, after = policies_in_words(self.change.before, self.change.after)
        return f"{self.name}: {before} → {after}"

    def describe_in_brief(self) -> str:
        """The difference of both policies; of one that is set or deleted, its first patterns."""
        before, after = self.change.before, self.change.after
        if before is None or after is None:
            return f"{self.name}: {in_brief(before)} → {in_brief(after)}"
        return f"{self.name}: {difference_in_brief(before, after)}"

    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """Everybody who loses brokers, or is kept from some; None: nobody."""
        reach = step.reach if isinstance(step.reach, Reach) else Reach()
        losses = dict(_losses(self.change.before, self.change.after, reach))
        if not losses:
            return None
        told = list(losses)
        if len(losses) > MAX_IN_HEADLINE:
            told[1:] = [f"and {len(losses) - 1:,} more losses"]
        return ApprovalWarning(
            headline="; ".join(told),
            subject=f"the {self.name}",
            words=". ".join(filter(None, losses.values())),
        )

    def _now(self, cluster: ClusterReader) -> IsolationPolicy | None:
        return cluster.isolation_policies().get(self.change.policy)


def by_hand(change: SetIsolation) -> str:
    """How a person undoes a change."""
    if change.before is None:
        return f"Delete it (`pulsar-admin ns-isolation-policy delete`): {STAYS}."
    return f"Set it to {policy_in_words(change.before)}, with `--unload-scope none`: {STAYS}."


def _losses(former: IsolationPolicy | None, new: IsolationPolicy | None, reach: Reach) -> Iterator[tuple[str, str]]:
    """What somebody loses by a change of a policy: in few words, and in a sentence with names."""
    before, after = former or NO_POLICY, new or NO_POLICY
    if set(after.primary) - set(before.primary):
        taken = after.primaries(reach.brokers) - before.primaries(reach.brokers)
        yield (
            "keeps other namespaces from the group's brokers",
            (
                f"a namespace that no isolation policy names gets no bundle on {_brokers(taken)} any more. Its bundles"
                " that are there stay until they are unloaded, and are loaded elsewhere then"
            ),
        )
    joining = [each for each in reach.namespaces if after.claims(each) and not before.claims(each)]
    if former and joining:
        many = counted(len(joining), "more namespace")
        yield f"keeps {many} to the group's brokers", f"{named(joining)} may be on no broker outside of the group"
    leaving = [each for each in reach.namespaces if before.claims(each) and not after.claims(each)]
    if former and new is None:
        yield (
            "gives the group's brokers to all namespaces",
            f"bundles of {named(leaving) or 'its namespaces'} may be loaded on any broker then, and others on these",
        )
    elif former and leaving:
        many = counted(len(leaving), "namespace")
        yield (
            f"takes the group's brokers from {many}",
            f"bundles of {named(leaving)} are loaded on other brokers from then on, beside everybody else's",
        )
    if former and new:
        yield from _fewer_brokers(former, new, reach)


def _fewer_brokers(before: IsolationPolicy, after: IsolationPolicy, reach: Reach) -> Iterator[tuple[str, str]]:
    """What namespaces that stay in a group lose."""
    who = named([each for each in reach.namespaces if before.claims(each) and after.claims(each)]) or "its namespaces"
    if set(before.primary) - set(after.primary):
        gone = before.primaries(reach.brokers) - after.primaries(reach.brokers)
        yield "takes brokers from the group", f"bundles of {who} are not loaded on {_brokers(gone)} any more"
    if dropped := sorted(set(before.secondary) - set(after.secondary) - set(after.primary)):
        yield (
            "drops secondary brokers of the group",
            f"where too few primary brokers run, no broker of {' or '.join(dropped)} helps {who}",
        )
    if after.secondary and after.least_primaries < before.least_primaries:
        yield (
            "has secondary brokers help later",
            (
                f"while fewer than {after.least_primaries:,} of the primary brokers run, secondary ones help {who}, and"
                f" not while fewer than {before.least_primaries:,} run, as now"
            ),
        )


def _brokers(brokers: frozenset[str]) -> str:
    return named(sorted(brokers)) or "these brokers"
