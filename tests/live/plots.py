"""A namespace of a test's own on a lab that ends with the tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from lab.errors import NotReachedError
from lab.faults.real.ground import ground

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground


@contextlib.contextmanager
def plot(lab: Lab, name: str, bundles: int = 4, **policies: Any) -> Iterator[Ground]:
    """Yields a `ground`, and leaves behind what brokers do not delete for minutes (docs/pulsar-behaviour.md)."""
    stack = contextlib.ExitStack()
    here = stack.enter_context(ground(lab, name, bundles, **policies))
    try:
        yield here
    finally:
        with contextlib.suppress(NotReachedError):
            stack.close()
