"""The Prometheus text format 0.0.4, as a broker writes it."""

from collections.abc import Iterator, Mapping
from typing import Literal

Kind = Literal["gauge", "counter", "histogram", "summary"]


def family(name: str, kind: Kind) -> str:
    """The line before the samples of a family."""
    return f"# TYPE {name} {kind}\n"


def sample(series: str, labels: Mapping[str, str], value: float, between: str = ",") -> str:
    """A sample as a line of text; ``between`` separates labels, for some series by ``", "``."""
    inside = between.join(f'{name}="{text}"' for name, text in labels.items())
    return f"{series}{{{inside}}} {value}\n" if inside else f"{series} {value}\n"


def gauge(series: str, labels: Mapping[str, str], value: float) -> Iterator[str]:
    """A family of one sample."""
    yield family(series, "gauge")
    yield sample(series, labels, value)


def counted(series: str, labels: Mapping[str, str], count: float, total: float) -> Iterator[str]:
    """The count and the sum of a histogram or summary."""
    yield sample(f"{series}_count", labels, count)
    yield sample(f"{series}_sum", labels, total)
