"""Threads that use a type, or the library, for the first time at once: no process ends by a signal."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from tests.attacks.first_use import NAMESPACE

SUSPECT = SubscriptionSpec("s", consumers=1, backlog=7, unacked=5, ack_holes=3, delayed=2)
TOPIC = TopicSpec("t", partitions=100, producers=1, subscriptions=(SUSPECT,))
SPEC = ClusterSpec(
    namespaces=tuple(
        NamespaceSpec(name, bundles=6, topics=(TOPIC,)) for name in (NAMESPACE, "acme/shop", "acme/users")
    ),
    steady=True,
)
"""Three brokers, each with topics that a check-up asks one by one."""

PROCESSES = 30


def exit_codes(*arguments: str) -> dict[str, int]:
    """Exit codes of the processes that `tests.attacks.first_use` starts, by name; a signal's number is negative."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.attacks.first_use", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        timeout=600,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=dict[str, int])


def failed(codes: dict[str, int]) -> dict[str, int]:
    """Those that did not end well."""
    return {name: code for name, code in codes.items() if code}


def test_a_type_that_another_thread_is_learning_can_be_used() -> None:
    """A thread that decodes or converts to a type waits until the thread that uses it first has learned it."""
    codes = exit_codes("types")
    assert codes
    assert failed(codes) == {}


@pytest.mark.extended("tests/attacks/test_no_crash.py::test_a_type_that_another_thread_is_learning_can_be_used")
def test_no_process_that_collects_diagnoses_and_looks_live_ends_by_a_signal() -> None:
    """Of fresh processes that do all of it at once, on threads that take turns every microsecond, each ends well."""
    with running_simulator(SPEC, keep_log=False) as cluster:
        codes = exit_codes("cluster", str(PROCESSES), *cluster.admin_urls)
    assert len(codes) == PROCESSES
    assert failed(codes) == {}
