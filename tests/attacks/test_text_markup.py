"""Outside text is text: no name becomes markup, a link, a template, a tag of a page or a path."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration.approval import ApproveBatch
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.policy.files import policy_file
from pulsar_steward.policy.never_asked import namespace_to_leave_alone
from pulsar_steward.report.checkup.html import as_html
from tests.attacks.hostile import HOSTILE, MANY_LINES, READ, a_batch_of, a_checkup_of, a_plan_of, unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from markdown_it.token import Token


LINKS = [
    *("https://evil.example/x", "HTTP://evil.example", "see(https://evil.example)", "|https://evil.example|"),
    *("`https://evil.example`", "a`b|https://evil.example/a|b`c", "www.evil.example", "x,www.evil.example/y"),
    *("ftp://evil.example", "alice@evil.example", "mailto:alice@evil.example", "xmpp:alice@evil.example/x"),
    *("https://www.evil.example", "persistent://a@evil.example/b", r"https:\//evil.example"),
    *("https&#58;//evil.example", "<https://evil.example>", "<alice@evil.example>"),
    *("[x](https://evil.example)", "[x](javascript:alert(1))", "![x](https://evil.example/p.png)", "[x][y]"),
    *("[x]: https://evil.example", "[^1]", "[^1]: note"),
]
MARKUP = [
    *("<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<!-- x -->"),
    *("<details><summary>x</summary>", "&lt;b&gt;", "&#x202e;x", "# heading", "- item", "+ item", "* item"),
    *("1. item", "1) item", "> quote", "---", "***", "===", "- - -", "    code", "```", "~~~", "`x`", "``"),
    *("**x**", "__x__", "*x*", "~~x~~", "a | b", "| a | b |", "|---|---|", "\\", "\\|", "x\\", "- [ ] task"),
    *(":---:",),
]
OWN = ("text", "text_special", "code_inline", "softbreak")
"""Tokens of words, which a name may have."""
AUTOLINKS = (
    re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)", re.IGNORECASE),
    re.compile(r"(^|[^\w])([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)"),
)
"""What the Markdown of Airflow's pages (remark-gfm) looks for in text once backslashes and entities are resolved."""

RENDERED: dict[str, Callable[[str], str]] = {
    name: (lambda words, made=made: made(words, None))  # type: ignore[misc]  # no Markdown needs a folder
    for name, made in MANY_LINES.items()
    if "approval" in name or "report" in name
}


def tokens(markdown: str) -> list[Token]:
    """Every token that GitHub's Markdown makes of a text, links without brackets included."""
    parser = MarkdownIt("gfm-like")
    assert parser.linkify is not None
    parser.linkify.set({"fuzzy_link": False})  # GitHub's own links need a scheme or `www.`, which is added here
    parser.linkify.add("www.", {"validate": re.compile(r"^[-.\w]+")})
    parser.linkify.add("//", None)
    return [each for token in parser.parse(markdown) for each in (token, *(token.children or ()))]


def words_of(made: Iterable[Token]) -> str:
    """Words of a text as they are read."""
    return " ".join("".join(each.content for each in made if each.type in OWN).split())


def runs(made: Iterable[Token]) -> Iterator[str]:
    """The text between two other things, as one piece each: what an autolink may be found in."""
    run = ""
    for token in made:
        if token.type in {"text", "text_special"}:
            run += token.content
        else:
            yield run
            run = ""
    yield run


@cache
def usual(outlet: str, *, in_a_policy: bool, words: int) -> Counter[str]:
    """The things that Markdown makes of an outlet's text where a name is harmless.

    A name that a policy can hold makes one line more: what is never asked of it.
    """
    plain = " ".join([*["a"] * (words - 1), "name" if in_a_policy else "name?"])
    return things(tokens(RENDERED[outlet](plain)))


def things(made: Iterable[Token]) -> Counter[str]:
    return Counter(each.type for each in made if each.type not in OWN)


@pytest.mark.parametrize("outlet", RENDERED)
@pytest.mark.parametrize("name", [*LINKS, *MARKUP])
def test_no_name_becomes_markup_where_markdown_is_rendered(outlet: str, name: str) -> None:
    """A name makes no link, image, tag, heading, list, table or emphasis that a harmless name would not make.

    Airflow's pages look for addresses in the text that the Markdown gives, where backslashes are gone; so that text
    holds no address outside of code.
    """
    made = tokens(RENDERED[outlet](name))
    in_a_policy = namespace_to_leave_alone(a_batch_of(name)) is not None
    # A card leaves out what has no room beside a name of more words.
    assert things(made) == usual(outlet, in_a_policy=in_a_policy, words=len(f"x{name}x".split()))
    assert " ".join(name.split()) in words_of(made)
    assert [run for run in runs(made) for autolink in AUTOLINKS if autolink.search(run)] == []


JINJA = "{{ 7 * 7 }}{% raw %}{# x #}"


class Mapped:
    """Stands for the argument of a mapped group, which Airflow asks for its value."""

    def resolve(self, _context: Mapping[str, Any]) -> Any:
        """Result of a run's first task for a batch."""
        return msgspec.to_builtins(BatchRef.of(a_plan_of(JINJA), a_batch_of(JINJA)))


def test_no_name_becomes_a_template() -> None:
    """Template markup in a name is not rendered, and the question's subject and body are no template fields."""
    task = ApproveBatch(task_id="approve", batch=Mapped(), map_index_template="{{ task.batch['label'] }}")
    environment = task.get_template_env()
    task.render_template_fields({}, environment)
    index = environment.from_string(str(task.map_index_template)).render(task=task)
    assert task.batch["label"] == index
    assert index.startswith(f"{JINJA} b1: ")
    assert f" in shop/{JINJA}, now" in index
    assert {"subject", "body"} & set(task.template_fields) == set()


class Read(HTMLParser):
    """Page as a browser takes it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self._silent = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        self._silent = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the base class's signature
        """A tag closes."""
        self._silent = False

    def handle_data(self, data: str) -> None:
        """Text."""
        if not self._silent:
            self.text += data


def figures_of(page: str) -> str:
    """Every text in the data of a page's drawings."""
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page)

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for each in value:
                yield from texts(each)
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from texts(key)
                yield from texts(each)

    return "".join(texts(json.loads(figures)))


def test_what_cannot_be_seen_is_spelled_out_in_text_attributes_and_drawings_of_the_page(tmp_path: Path) -> None:
    """The check-up's page spells out hidden characters in its text, its attributes and its drawings' data."""
    page = as_html(a_checkup_of(HOSTILE, tmp_path / "s"))
    read = Read(page)
    assert READ in read.text
    assert unseen(read.text, lines=True) == set()
    assert unseen("".join(read.attributes)) == set()
    assert unseen(figures_of(page)) == set()
    assert r"\u202e" in figures_of(page)


@pytest.fixture(scope="module")
def usual_tags(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """The tags of a page on which every name is harmless."""
    return Counter(Read(as_html(a_checkup_of("n", tmp_path_factory.mktemp("usual") / "s"))).tags)


@pytest.mark.parametrize(
    "name",
    [
        '"><img src=x onerror=alert(1)>',
        "</script><script>alert(1)</script>",
        "</title><img src=x>",
        "<!--",
        "&lt;b&gt;&#x202e;",
        "`</code><b>x</b>`",
        "https://evil.example",
        '<a href="https://evil.example">x</a>',
    ],
)
def test_no_name_becomes_a_tag_of_the_page(name: str, usual_tags: Counter[str], tmp_path: Path) -> None:
    """A name adds no tag to the page or to the data of its drawings, and the page shows it as it is."""
    page = as_html(a_checkup_of(name, tmp_path / "s"))
    assert Counter(Read(page).tags) == usual_tags
    assert f"`{name}`" in Read(page).text
    assert not re.search(r"<(?!br>|extra>|/extra>|b>|/b>)", figures_of(page))


@pytest.mark.parametrize("name", ["../../etc/steward", "/etc/steward", "a/b", "..", ".", "", "a\x00b", "-x", "a\nb"])
def test_no_clusters_name_becomes_a_path(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cluster name that could form a path is refused when the policy file is looked up."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="cluster"):
        policy_file(name)
