"""Names in paths: whatever a name holds, it stays one segment and arrives as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.errors import InvalidName, NotFound
from pulsar_steward.pulsar import calls, paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.pulsar.transport import Transport
    from tests.unit.pulsar.scripted import ScriptedBroker

AWKWARD = ("a/b", "50%", "%2F", "two words", 'it\'s "so"', "ünï-主題", "a?b#c", "a+b&c=d", "~._-", "a\\b;c", "\t\n")

names = st.text(min_size=1).filter(lambda name: name not in {".", ".."})
local_names = names.filter(lambda name: "/" not in name)

BUILDERS: dict[str, tuple[Callable[[str], str], list[str]]] = {
    "tenant": (paths.tenant_namespaces, ["admin", "v2", "namespaces", "{}"]),
    "bundle to unload": (
        lambda name: calls.unload("t/n", name, "b:1").path,
        ["admin", "v2", "namespaces", "t", "n", "{}", "unload"],
    ),
    "bundle to split": (
        lambda name: calls.split("t/n", name, "a").path,
        ["admin", "v2", "namespaces", "t", "n", "{}", "split"],
    ),
    "namespace": (lambda name: paths.namespace(f"t/{name}"), ["admin", "v2", "namespaces", "t", "{}"]),
    "below a namespace": (
        lambda name: paths.namespace(f"t/{name}", "bundles"),
        ["admin", "v2", "namespaces", "t", "{}", "bundles"],
    ),
    "topic": (lambda name: paths.topic(f"persistent://t/n/{name}"), ["admin", "v2", "persistent", "t", "n", "{}"]),
    "lookup": (
        lambda name: paths.lookup(f"persistent://t/n/{name}"),
        ["lookup", "v2", "topic", "persistent", "t", "n", "{}"],
    ),
}


def segments(path: str) -> list[str]:
    """The unquoted segments of an absolute path."""
    return [unquote(segment) for segment in path.removeprefix("/").split("/")]


@given(names)
def test_a_segment_unquotes_to_the_name_it_was_made_of(name: str) -> None:
    """A quoted name unquotes to the same name, and has no character that could end its segment."""
    quoted = paths.segment(name)
    assert unquote(quoted) == name
    assert not set(quoted) & set("/?#%;&+ \"'\\") - {"%"}


@pytest.mark.parametrize("builder", BUILDERS)
@given(name=names)
def test_a_name_stays_one_segment(builder: str, name: str) -> None:
    """A name in a path stays one segment, whatever characters it has."""
    build, expected = BUILDERS[builder]
    assert segments(build(name)) == [part.format(name) for part in expected]


@given(local_names, local_names)
def test_a_namespace_is_two_segments(tenant: str, local: str) -> None:
    """A tenant and a namespace are quoted each on its own, so that the slash between them stays one."""
    assert segments(paths.namespace(f"{tenant}/{local}")) == ["admin", "v2", "namespaces", tenant, local]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_walk_the_path_is_refused(name: str) -> None:
    """An empty name and a name of dots are refused, as the path would lead to another resource."""
    with pytest.raises(InvalidName, match="cannot be a part"):
        paths.segment(name)


@pytest.mark.parametrize("namespace", ["tenant", "/ns", "tenant/"])
def test_half_a_namespace_is_refused(namespace: str) -> None:
    """A namespace without a tenant or without a local name is refused."""
    with pytest.raises(InvalidName, match="cannot be a part"):
        paths.namespace(namespace, "bundles")


@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_arrives_as_it_is(
    name: str, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    """A name with special characters arrives at the broker unchanged and as one segment."""
    with pytest.raises(NotFound):
        transport(broker.url).send("GET", paths.topic(f"persistent://t/n/{name}"))
    assert segments(broker.asked[-1].target) == ["admin", "v2", "persistent", "t", "n", name]


@pytest.mark.parametrize("value", AWKWARD)
def test_an_awkward_query_arrives_as_it_is(
    value: str, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    """A value with special characters in the query arrives at the broker unchanged, and adds no key."""
    transport(broker.url).send("GET", paths.BROKERS, {"name": value})
    assert parse_qs(broker.asked[-1].target.partition("?")[2], strict_parsing=True) == {"name": [value]}
