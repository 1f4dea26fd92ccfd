"""Report text about a standstill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import slowest_words
from pulsar_steward.checks.clients.standstill_rows import AGAIN, FULL, STILL, UNACKED
from pulsar_steward.checks.earlier import each_since
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.clients.standstill import Standstill

_LAST = {
    STILL: "last delivery or acknowledgement",
    FULL: "last delivery",
    UNACKED: "last acknowledgement",
    AGAIN: "last acknowledgement",
}


def evidence_of(standstill: Standstill) -> str:
    """Evidence of the standstill in a sentence."""
    row = standstill.row
    return (
        f"Subscription {row['subscription']} of {row['topic']} has {_amount(row)}, but {_what(row)}"
        f" ({_since(row)}){_earlier(standstill)}; {_permits(row)}{_doubt(standstill)}; {slowest_words(row)}."
    )


def figures_of(standstill: Standstill) -> dict[str, int]:
    """Figures of the evidence."""
    row, since = standstill.row, standstill.since_seconds
    figures = {
        "consumers": row["consumers"],
        "consumers_without_permits": row["without_permits"],
        "due_entries": row["due_entries"],
        "due_messages": row["messages"],
        "unacked_messages": row["unacked"],
    }
    return figures if since is None else figures | {"since_seconds": since}


def _amount(row: Row) -> str:
    """Size of the backlog: brokers count entries; the number of messages is an estimate."""
    details = []
    if (row["messages_per_entry"] or 0) > 1:
        details.append(f"about {counted(row['messages'], 'message')}, at {row['messages_per_entry']:,} an entry")
    if row["unacked"]:
        details.append(f"{counted(row['unacked'], 'message is', 'messages are')} delivered and not acknowledged")
    if not row["delayed_known"]:
        details.append("how many are delayed is not known")
    entries = f"{row['due_entries']:,} {'entry' if row['due_entries'] == 1 else 'entries'} due"
    return f"{entries} ({'; '.join(details)})" if details else entries


def _what(row: Row) -> str:
    if row["kind"] == FULL:
        return "nothing is delivered, though some of what they hold is acknowledged"
    if row["kind"] == UNACKED:
        return "nothing is acknowledged of what is delivered"
    if row["kind"] == AGAIN:
        return f"{row['redeliver_rate']:,.1f} messages/s are delivered again, the same ones, and none is acknowledged"
    return "nothing is delivered and nothing acknowledged"


def _since(row: Row) -> str:
    last = _LAST[row["kind"]]
    if row["never"]:
        none = f"no {last.removeprefix('last ')} since its consumers connected"
        if row["since_seconds"] is None:
            return none
        return f"{none}, {seconds_in_words(row['since_seconds'], rounded=True)} before"
    if row["since_seconds"] is None:
        return f"{last} not known{'' if row['asked'] else ', as its topic was not asked'}"
    return f"{last} {seconds_in_words(row['since_seconds'], rounded=True)} before"


def _earlier(standstill: Standstill) -> str:
    if standstill.comes_back:
        return f"; other consumers than now were connected {each_since(standstill.returns)}: they come and go"
    if standstill.alike and standstill.row["kind"] != FULL and not standstill.row["fresh"]:
        return f"; it was so {each_since(standstill.alike)} too"
    return ""


def _permits(row: Row) -> str:
    if row["fresh"]:
        return "all its consumers have just connected"
    if row["without_permits"] >= row["consumers"]:
        return "no consumer asks for more: look at the clients"
    if row["type"] == "Failover" and row["all_stuck"]:
        return "its active consumer asks for no more: look at it, the others stand by"
    return f"{row['consumers'] - row['without_permits']:,} of its consumers ask for more"


def _doubt(standstill: Standstill) -> str:
    """Note on a healthy client that would look the same."""
    row = standstill.row
    if row["kind"] == AGAIN or standstill.severity is Severity.CRITICAL:
        return ""
    if not standstill.many_entries and (row["messages_per_entry"] or 0) > 1:
        return "; a batch is acknowledged as a whole, so a slow consumer shows nothing while it works through one"
    if not standstill.many:
        return "; few messages that each take long would look the same"
    return ""
