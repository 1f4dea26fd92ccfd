"""Change of a setting of a namespace or topic: set or removed by one call, and read back at the same level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import (
    ApprovalWarning,
    Aspect,
    Before,
    ChangeKind,
    Drifted,
    Inverse,
    Observation,
    changed_since,
)
from pulsar_steward.model.loss import Loss, entries_in_words, size_in_words
from pulsar_steward.model.pulsar_versions import OF_NAMESPACES, OF_TOPICS, Operation
from pulsar_steward.model.setting import BacklogQuota, DelayedDelivery, Setting, SettingName, in_words, when_in_force
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import counted, milliseconds_in_words
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ClusterReader, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforeSetting(Before, frozen=True):
    """Former value of the setting; None: it was not set there."""

    value: Setting | None


class SettingChange(ChangeKind[ChangeSetting, BeforeSetting]):
    """Change of one setting to another value, or to none."""

    undoable = True
    aspects = frozenset({Aspect.SETTING, Aspect.DATA})
    disturbs = None
    before_type = BeforeSetting

    @property
    def subject(self) -> Subject:
        """The setting, and its namespace or topic."""
        return self.change.holder, self.change.name.value

    @property
    def operation(self) -> Operation:
        """The operation for this setting, of a namespace or of a topic."""
        return (OF_NAMESPACES if self.change.topic is None else OF_TOPICS)[self.change.name]

    @property
    def loses_messages(self) -> bool:
        """True if it deletes messages, consumed or not, that would be kept without it."""
        return self.change.loses_messages

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0: no client has to reconnect."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeSetting:
        """The value to restore later; if it differs from the plan's, somebody changed it since."""
        change = self.change
        now = cluster.own_setting(change)
        if now != change.before:
            raise Drifted(
                f"the {change.name} of {change.holder} is {change.in_words(now)}, not"
                f" {change.in_words(change.before)} as when this was planned"
            )
        return BeforeSetting(value=now)

    def call(self) -> Call:
        """Sets the new value, or removes the setting if there is none."""
        return calls.set_to(self.change.holder, self.change.name, self.change.after)

    def completion(self, before: BeforeSetting) -> Call | None:
        """None: the call is sufficient."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """The present value.

        `untouched` is never True: if the value is the former one, somebody may have set it back after the call took
        effect, and brokers report no version of a value.
        """
        change = self.change
        now = cluster.own_setting(change)
        return Observation(
            there=now == change.after,
            untouched=False,
            words=f"the {change.name} of {change.holder} is {in_words(change.name, now)}",
            values={"value": msgspec.to_builtins(now)},
        )

    def inverse(self, before: BeforeSetting, cluster: ClusterReader) -> Inverse:
        """The change to the former value, if the setting still has the value that Steward set."""
        made = self.change
        what = f"the {made.name} of {made.holder}"
        now = cluster.own_setting(made)
        inherited = cluster.inherited(made) if None in (made.after, before.value) else msgspec.UNSET
        back = msgspec.structs.replace(made, before=made.after, after=before.value, inherited=inherited)
        then, former = back.in_words(made.after), back.in_words(before.value)
        if now != made.after:
            did = "removed it" if made.after is None else f"set it to {then}"
            raise changed_since(what, back.in_words(now), did, former)
        return Inverse(
            change=back,
            made=f"changed {what} from {former} to {then}",
            effect=f"{what} is {former}, as it was before{when_in_force(made.after, back.after_in_force)}",
            undo=back.inverse,
            undo_note=f"Set it once more: {then}.",
        )

    def describe(self) -> str:
        """Both values."""
        change = self.change
        before, after = (change.in_words(value) for value in (change.before, change.after))
        if before.partition("; ")[2] == after.partition("; ")[2]:  # quotas that differ in their limits alone
            before = before.partition("; ")[0]
        return f"{change.name} of {change.holder}: {before} → {after}"

    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """Messages that are deleted, or producers that are stopped."""
        change, loss, spared = self.change, step.known_loss, ""
        if change.refuses_delays:
            return _refused_delays(change)
        if self.loses_messages or loss is not None:
            headline, otherwise = "LETS BROKERS DELETE MESSAGES", "messages beyond it are deleted once it is set"
        elif isinstance(change.after_in_force, BacklogQuota) and change.stops_producers:
            headline = "stops producers of topics over the new limit"
            otherwise = "producers of a topic that is over it are stopped once it is set, and what is stored stays"
            # An age is not always known before the call.
            spared = "none is over it now" if change.name is SettingName.SIZE_QUOTA else ""
        else:
            return None
        return ApprovalWarning(
            headline=headline,
            subject=f"{change.name} of {change.holder}",
            words=self._lost_at_once(loss),
            # These guards check if a topic exceeds the quota already.
            guard="age_room" if change.name is SettingName.AGE_QUOTA else "quota_room",
            otherwise=otherwise,
            spared=spared,
        )

    def _lost_at_once(self, loss: Loss | None) -> str | None:
        """Data that is deleted at once, in words; None: a guard's reason tells it."""
        change = self.change
        if change.deletes_stored:
            return _deleted(loss)
        if change.name is SettingName.TTL and change.takes_messages:
            return _expired(loss)
        return _evicted(loss) if change.evicts and change.name is SettingName.SIZE_QUOTA else None


def _refused_delays(change: ChangeSetting) -> ApprovalWarning:
    bound = change.after_in_force
    longest = bound.longest_milliseconds if isinstance(bound, DelayedDelivery) else 0
    return ApprovalWarning(
        headline="REFUSES MESSAGES that are to be delayed for longer",
        subject=f"{change.name} of {change.holder}",
        words=(
            f"from then on no message that is to be delayed for more than {milliseconds_in_words(longest)} is taken: a"
            " Java client fails its send, and a PYTHON CLIENT CONNECTS ANEW AND SENDS IT AGAIN, TEN TIMES A SECOND, and"
            " nothing behind it (seen with 3.13). Those that are stored already stay, whatever their delay. Ask who"
            " produces there first"
        ),
        guard="longest_delay",
        otherwise="how long messages are delayed now, brokers do not tell",
    )


def _deleted(loss: Loss | None) -> str:
    if loss is None:
        return "how much of what is stored and consumed is deleted at once is not known; none of it can be read again"
    return (
        f"up to {size_in_words(loss.bytes)} of what is stored and consumed is deleted at once, and cannot be read"
        " again; where it would be more by the time of the call, with topics that are not loaded, nothing is done"
    )


def _expired(loss: Loss | None) -> str:
    if loss is None:
        return (
            "HOW MUCH THAT NOBODY HAS READ IS LOST AT ONCE IS NOT KNOWN; later, what gets older than it is lost as well"
        )
    if not loss.topics:
        return "nothing that waits is older than it now, so nothing is lost at once; what gets older is lost unread"
    return (
        f"AT ONCE UP TO {_unread(loss)}; where it would be more by the time of the call, nothing is done. Later, what"
        " nobody has read in time is lost as well"
    )


def _evicted(loss: Loss | None) -> str:
    if loss is None:
        return "HOW MUCH THAT NOBODY HAS READ IS LOST AT ONCE IS NOT KNOWN; later, what is over it is evicted as well"
    if not loss.topics:
        return "no topic is over it now, so nothing is lost at once; what comes to be over it is evicted unread"
    return (
        f"AT ONCE UP TO {_unread(loss)}; where it would be more by the time of the call, nothing is done. Later, what"
        " is over it is evicted as well"
    )


def _unread(loss: Loss) -> str:
    many, topics = entries_in_words(loss.messages).upper(), counted(len(loss.topics) + loss.more, "topic")
    size = size_in_words(loss.bytes)
    return f"{many} ({size}) THAT NOBODY HAS READ ARE LOST, of {topics} (a batch of messages is one entry)"
