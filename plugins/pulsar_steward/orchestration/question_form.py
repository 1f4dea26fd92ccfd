"""Fields of a question's form, as Airflow's pages show them."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

from airflow.sdk import Param

from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.step import Step

APPROVE = "Approve"
REJECT = "Reject"
SNOOZE = "Snooze"
NEVER = "Never for this namespace"
QUESTION = "question"
"""Name of the field with the digest of the question, which each answer carries."""
STEPS = "steps"
COMMENT = "comment"
LOSS = "messages_may_be_lost"
SNOOZE_DAYS = "snooze_days"
UNTIL_WORSE = "until_it_gets_worse"

SNOOZE_DAYS_BY_DEFAULT = 7

MAX_SNOOZE_DAYS = 90
"""Longest snooze in days; for longer, a person answers with "never"."""
LEFT_OUT = "namespaces_left_out"

MAX_COMMENT_CHARACTERS = 4000
"""Characters of a comment that the ledger stores."""

_CHOICES = ["array", "null"]
"""JSON type of a field of several choices: after the last one is removed, Airflow's form has null instead of a list.

Airflow's form requires each field that may not be null, and accepts no answer while it is empty.
"""


def form_of(
    options: Sequence[str], steps: Sequence[Step], namespaces: Sequence[str], labels: dict[str, str]
) -> dict[str, Param]:
    """Fields of a question: the steps to approve, and for a group the namespaces to leave out.

    Args:
        options: The answers to choose from.
        steps: The steps to approve.
        namespaces: Namespaces that may be left out as a whole.
        labels: Words for each step, by its id.
    """
    from pulsar_steward.changes import kind_of
    from pulsar_steward.outside_text import shown

    ids = [step.step_id for step in steps]
    fields = {
        STEPS: Param(
            ids,
            type=_CHOICES,
            title="Steps to carry out",
            description="Only the steps in this list are carried out. Remove those that you do not want.",
            items={"type": "string", "enum": ids},
            examples=ids,
            values_display={step: labels[step] for step in ids},
        ),
        COMMENT: Param(
            "",
            type=["string", "null"],
            format="multiline",
            title="Comment",
            description=(
                f"Kept with your name in Steward's history. At most {MAX_COMMENT_CHARACTERS:,} characters: a longer one"
                " makes the approval void."
            ),
        ),
    }
    if namespaces:
        fields[LEFT_OUT] = Param(
            [],
            type=_CHOICES,
            title="Namespaces to leave out",
            description="All but these: no step in them is carried out, ticked or not.",
            items={"type": "string", "enum": list(namespaces)},
            examples=list(namespaces),
            values_display={name: shown(name) for name in namespaces},
        )
    if SNOOZE in options:
        fields |= _snooze_fields()
    if any(kind_of(step.change).loses_messages for step in steps):
        fields[LOSS] = Param(
            False,
            type=["boolean", "null"],
            title="Messages may be lost, and shall be",
            description="Brokers delete messages for these settings. Without this tick an approval is a rejection.",
        )
    return fields


def question_field(digest: str) -> Param:
    """The field with the question's digest: Airflow's pages hide it, and send it with every answer."""
    return Param(
        digest,
        type="string",
        const=digest,
        title="Question",
        description="Which question this answers. Leave it as it is: with another value an answer counts for nothing.",
    )


def _snooze_fields() -> dict[str, Param]:
    return {
        SNOOZE_DAYS: Param(
            SNOOZE_DAYS_BY_DEFAULT,
            type=["integer", "null"],
            minimum=1,
            maximum=MAX_SNOOZE_DAYS,
            title="Snooze: ask again in days",
            description=(
                f"Only for {SNOOZE}, which changes nothing: the question comes back after so many days. Empty:"
                f" {SNOOZE_DAYS_BY_DEFAULT}."
            ),
        ),
        UNTIL_WORSE: Param(
            True,
            type=["boolean", "null"],
            title="Snooze: sooner if worse",
            description=(
                "The question comes back earlier if a finding gets worse or comes anew, or approving would lose more."
            ),
        ),
    }


MAX_QUOTED_CHARACTERS = 200
"""Characters of an invalid value that a reason quotes."""

_NEVER_KEPT = frozenset({"\0", *map(chr, range(0xD800, 0xE000))})


def kept(words: str) -> str:
    """Text that every database accepts: NUL and unpaired surrogates are spelled out, as some databases refuse them."""
    return "".join(shown(each) if each in _NEVER_KEPT else each for each in words)


def quoted(thing: object) -> str:
    """Short form of an invalid value, which may be of any size and depth."""
    if isinstance(thing, str):
        return kept(cut(thing, MAX_QUOTED_CHARACTERS))
    try:
        return kept(cut(reprlib.repr(thing), MAX_QUOTED_CHARACTERS))
    except (ValueError, RecursionError):  # an integer with too many digits to print
        return f"of the type {type(thing).__name__}"


def cut(words: str, most: int) -> str:
    """At most the first `most` characters of a text; a cut text ends with an ellipsis, which counts."""
    return words if len(words) <= most else f"{words[: most - 1]}…"
