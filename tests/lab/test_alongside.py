"""Work beside a block ends with it, and what it raised is not lost: a trouble that ended early made no fault."""

from __future__ import annotations

import threading

import pytest

from lab.alongside import alongside


def test_work_that_fails_fails_the_block() -> None:
    def fails() -> None:
        raise AttributeError("pause_bookies")

    with pytest.raises(AttributeError, match="pause_bookies"), alongside(fails, threading.Event()):
        pass


def test_work_is_over_with_its_block() -> None:
    over, ended = threading.Event(), threading.Event()

    def waits() -> None:
        over.wait()
        ended.set()

    with alongside(waits, over):
        assert not ended.is_set()
    assert ended.is_set()
