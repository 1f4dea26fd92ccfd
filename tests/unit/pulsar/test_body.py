"""Bodies of answers, small and large."""

from __future__ import annotations

import mmap
import tempfile
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.pulsar.body import gathered

if TYPE_CHECKING:
    from pathlib import Path

PIECES = [b'["', b"x" * 1000, b'",', b" 7]"]


@pytest.mark.parametrize(("most", "kind"), [(1 << 20, bytes), (1007, bytes), (1006, mmap.mmap), (0, mmap.mmap)])
def test_a_large_body_lies_in_a_file_that_is_gone_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, kind: type
) -> None:
    """A body over the limit is mapped from a file that is deleted at once, and it reads like any other body."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    body = gathered(iter(PIECES), most)

    assert isinstance(body, kind)
    assert bytes(body) == b"".join(PIECES)
    assert msgspec.json.decode(body) == ["x" * 1000, 7]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_an_empty_body() -> None:
    """A body without any pieces is empty, as in an answer with status 204."""
    assert gathered([]) == b""
