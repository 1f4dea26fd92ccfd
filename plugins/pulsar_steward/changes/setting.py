"""Change of a setting of a namespace or topic: set or removed by one call, and read back from where it is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin import calls
from pulsar_steward.changes.kind import ApprovalWarning, Before, ChangeKind, Drifted, Inverse, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.pulsar_versions import OF_NAMESPACES, OF_TOPICS, Operation
from pulsar_steward.model.setting import BacklogQuota, DelayedDelivery, Setting, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import bytes_in_words, counted, milliseconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.changes.kind import ClusterReader, Subject


class BeforeSetting(Before, frozen=True):
    """Former value of the setting; None: it was not set there."""

    value: Setting | None


class SettingChange(ChangeKind[ChangeSetting, BeforeSetting]):
    """Change of one setting to another value, or to none."""

    undoable = True
    sets_value = True
    disturbs = None
    before_type = BeforeSetting

    @property
    def subject(self) -> Subject:
        """The setting and whose it is."""
        return self.change.holder, self.change.name.value

    @property
    def operation(self) -> Operation:
        """Its own kind of setting, of a namespace or of a topic."""
        return (OF_NAMESPACES if self.change.topic is None else OF_TOPICS)[self.change.name]

    @property
    def loses_messages(self) -> bool:
        """True if messages, consumed or not, are deleted for it that would have been kept otherwise."""
        return self.change.loses_messages

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """None of them."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeSetting:
        """The value to go back to; another one than the plan rests on means that somebody changed it since."""
        change = self.change
        now = cluster.own_setting(change)
        if now != change.before:
            raise Drifted(
                f"the {change.name} of {change.holder} is {change.in_words(now)}, not"
                f" {change.in_words(change.before)} as when this was planned"
            )
        return BeforeSetting(value=now)

    def call(self) -> Call:
        """Sets it, or removes it where nothing shall be set."""
        return calls.set_to(self.change.holder, self.change.name, self.change.after)

    def completion(self, before: BeforeSetting) -> Call | None:
        """None: a setting is whole by itself."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """The value that is set now."""
        change = self.change
        now = cluster.own_setting(change)
        return Observation(
            there=now == change.after,
            untouched=now == change.before,
            words=f"the {change.name} of {change.holder} is {in_words(change.name, now)}",
            values={"value": msgspec.to_builtins(now)},
        )

    def inverse(self, before: BeforeSetting, cluster: ClusterReader) -> Inverse:
        """The former value, if the setting still has the one that Steward set."""
        made = self.change
        what = f"the {made.name} of {made.holder}"
        now = cluster.own_setting(made)
        inherited = cluster.inherited(made) if None in (made.after, before.value) else msgspec.UNSET
        back = msgspec.structs.replace(made, before=made.after, after=before.value, inherited=inherited)
        then, former = back.in_words(made.after), back.in_words(before.value)
        if now != made.after:
            did = "removed it" if made.after is None else f"set it to {then}"
            raise Refused(
                f"{what} is {back.in_words(now)} since somebody changed it; Steward had {did}, before it was"
                f" {former}; it is left as it is"
            )
        return Inverse(
            change=back,
            made=f"changed {what} from {former} to {then}",
            effect=f"{what} is {former}, as it was before",
            undo=back.inverse,
            undo_note=f"Set it once more: {then}.",
        )

    def describe(self) -> str:
        """Both values."""
        change = self.change
        before, after = (change.in_words(value) for value in (change.before, change.after))
        return f"{change.name} of {change.holder}: from {before} to {after}"

    def warning(self, loss: Loss | None) -> ApprovalWarning | None:
        """Messages that are deleted, or producers that are stopped."""
        change = self.change
        if change.refuses_delays:
            return _refused_delays(change)
        if self.loses_messages or loss is not None:
            headline = "LETS BROKERS DELETE MESSAGES"
        elif isinstance(change.after_in_force, BacklogQuota):
            headline = "STOPS PRODUCERS of a topic that is over it"
        else:
            return None
        return ApprovalWarning(
            headline=headline,
            subject=f"{change.name} of {change.holder}",
            words=self._lost_at_once(loss),
            # Whether a topic is over it already is what these guards look at.
            guard="age_room" if change.name is SettingName.AGE_QUOTA else "quota_room",
            otherwise="what is older than it, and not consumed, is gone once it is set",
        )

    def _lost_at_once(self, loss: Loss | None) -> str | None:
        """Data that is deleted at once; None: that is not known beforehand."""
        if self.change.deletes_stored:
            many = f"up to {bytes_in_words(loss.bytes)}, as of the snapshot," if loss else "what is kept beyond it"
            return f"of what is stored and consumed {many} is deleted, and cannot be read again"
        return _evicted(loss or Loss(messages=0)) if self.change.evicts_by_size else None


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


def _evicted(loss: Loss) -> str:
    topics = len(loss.topics) + loss.more
    if not topics:
        return "no topic is over it now, so nothing is lost at once; what comes to be over it is evicted unread"
    return (
        f"AT ONCE {loss.messages or 0:,} MESSAGES ({bytes_in_words(loss.bytes)}) THAT NOBODY HAS READ ARE LOST, of"
        f" {counted(topics, 'topic')}; where it would be more by the time of the call, nothing is done. Later, what is"
        " over it is evicted as well"
    )
