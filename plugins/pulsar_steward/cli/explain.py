"""``steward explain``: prints a check's meaning, what to do, and its thresholds."""

import difflib
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.markdown import Markdown
from rich.text import Text

from pulsar_steward.checks.check import CheckWords
from pulsar_steward.checks.registry import BY_ID, GROUPS
from pulsar_steward.cli.output import out, print_lines, width
from pulsar_steward.cli.paths import page_of
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.logs.patterns import LOG_CHECKS, PAGE
from pulsar_steward.logs.patterns import SECTION as LOGS
from pulsar_steward.model.section import Section
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import section_of
from pulsar_steward.report.checkup.text import bullets, fitting, heading, numbered, wrapped
from pulsar_steward.runtime.installed_files import installed_files

CheckId = Annotated[str | None, typer.Argument(metavar="[CHECK_ID]", help="As reports name it; none: lists them all.")]


REMEDY_PAGES = {
    "backlog_quota": "quotas-and-retention",
    "broker_drain": "drain",
    "broker_group": "broker-groups",
    "bundle_balance": "unload",
    "bundle_split": "split",
    "persistence": "persistence",
    "retention": "quotas-and-retention",
    "subscription_deletion": "subscription-deletion",
    "tc_balance": "unload",
    "tc_count": "coordinators",
    "topic_partitions": "partitions",
}
"""Page of each remedy, in docs/remediations."""


def explain(check_id: CheckId = None) -> None:
    """Explains a check: what it means, what to do, where that was learned, and its thresholds."""
    if check_id is None:
        print_lines(_all(fitting(width())))
        return
    info = BY_ID.get(check_id) or LOG_CHECKS.get(check_id)
    if info is None and (of_remedy := REMEDY_PAGES.get(kind := check_id.lower().replace("-", "_"))) is not None:
        checks = " and ".join(each.check_id for each in BY_ID.values() if each.remedied_by == kind)
        raise ConfigurationError(
            f"{kind} is no check but a remedy, which Steward can propose for {checks}: its page is"
            f" docs/remediations/{of_remedy}.md"
        )
    if info is None:
        near = difflib.get_close_matches(check_id.lower().replace("_", "-"), [*BY_ID, *LOG_CHECKS], n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else "`steward explain` lists them all"
        raise ConfigurationError(f"there is no check {check_id!r}: {meant}")
    print_lines(_lines(info, fitting(width())))
    page, console = page_of(PAGE if check_id in LOG_CHECKS else check_id), out()
    if page is None:
        print_lines([Text(), Text("The check's page is not at hand here: docs/checks of the project holds them.")])
        return
    text = page.read_text(encoding="utf-8")
    console.print()
    if console.is_terminal:
        console.print(Markdown(text), width=fitting(console.width))
    else:
        console.print(Text(text.rstrip()), soft_wrap=True)


def _all(columns: int) -> Iterator[Text]:
    for title, infos in (*GROUPS, (LOGS, tuple(LOG_CHECKS.values()))):
        if infos:
            yield from heading(title)
        for info in infos:
            yield Text(f"  {info.check_id}")
            yield from wrapped(info.title, columns, indent=4)


def _lines(info: CheckWords, columns: int) -> Iterator[Text]:
    yield from wrapped(f"{info.title} [{info.check_id}]", columns, style="heading")
    yield from wrapped(section_of(info.check_id), columns, style="quiet")
    yield from heading("What to do")
    yield from numbered(info.advice, columns, 2)
    yield from heading("Remedy")
    by_steward = f"Steward can propose one ({info.remedied_by}): `steward plan` shows it, a person approves it."
    yield from wrapped(by_steward if info.remedied_by else "Steward has none: it takes a person.", columns, indent=2)
    yield from heading("Thresholds in the policy, and their defaults")
    name = info.check_id.replace("-", "_")
    section = getattr(Policy(), name, None)
    fields = type(section).model_fields if isinstance(section, Section) else {}
    keys = [f"{name}.{key}: {getattr(section, key)}: {field.description or ''}" for key, field in fields.items()]
    yield from bullets(keys or ["none: this check has nothing to set"], columns)
    yield from heading("Source")
    yield from wrapped(info.source, columns, indent=2)
    folder = installed_files()
    if folder is not None and "docs/" in info.source:
        yield from wrapped(f"docs/ is {folder / 'docs'}", columns, indent=2)
