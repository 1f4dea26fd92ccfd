"""Subject of a run: the publications that started it, or its own parameters."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_steward.orchestration.remediating import RemediateParams, wanted_by


@pytest.mark.parametrize(
    ("params", "published", "wanted"),
    [
        pytest.param({"cluster": "east"}, [], [("east", None, ())], id="the newest of a cluster"),
        pytest.param({"cluster": "east", "plan_id": "p1"}, [], [("east", "p1", ())], id="a named plan"),
        pytest.param({"cluster": "east", "plan_id": ""}, [], [("east", None, ())], id="an empty name is none"),
        pytest.param(
            {"cluster": "east", "kinds": ["tc_balance"]}, [], [("east", None, ("tc_balance",))], id="only some kinds"
        ),
        pytest.param(
            {"cluster": "demo"}, [{"cluster": "east", "plan_ids": ["p1"]}], [("east", "p1", ())], id="a publication"
        ),
        pytest.param(
            {"cluster": "demo", "kinds": ["tc_balance"]},
            [{"cluster": "east", "plan_ids": ["p1"]}],
            [("east", "p1", ("tc_balance",))],
            id="only some kinds of a publication",
        ),
        pytest.param(
            {"cluster": "demo", "kinds": None},
            [
                {"cluster": "west", "plan_ids": ["w1"]},
                {"cluster": "east", "plan_ids": ["p1", "p3"]},
                {"cluster": "east", "plan_ids": ["p2", "p1"]},
            ],
            [("east", "p1", ()), ("east", "p3", ()), ("east", "p2", ()), ("west", "w1", ())],
            id="every publication, as questions of older ones stand",
        ),
        pytest.param(
            {"cluster": "demo"},
            [{"cluster": 7, "plan_ids": ["x"]}, {"plan_ids": "x"}, {"cluster": "east", "plan_ids": ["p1"]}],
            [("east", "p1", ())],
            id="one publication among events that are none",
        ),
        pytest.param({"cluster": "demo"}, [{"cluster": "east"}], [("demo", None, ())], id="a publication of no plan"),
    ],
)
def test_what_a_run_is_about(
    params: dict[str, Any], published: list[dict[str, Any]], wanted: list[tuple[str, str | None, tuple[str, ...]]]
) -> None:
    """Publications take precedence over a run's cluster and plan, and clusters come in order of their names."""
    expected = tuple(
        RemediateParams(
            cluster=cluster,
            plan_id=plan_id,
            kinds=kinds,
            published=any(plan_id in event.get("plan_ids", ()) for event in published),
        )
        for cluster, plan_id, kinds in wanted
    )
    assert wanted_by(params, published) == expected
