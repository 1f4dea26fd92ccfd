"""The topics of one namespace, findable by name and by hash range without going through all of them."""

from bisect import bisect_left

from lab.simulator.model import Topic
from lab.simulator.ranges import LAST


class TopicIndex:
    """Topics by name; sorted by position when asked for a range."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self._ordered: list[Topic] | None = None

    def put(self, topic: Topic) -> None:
        """Adds or replaces a topic."""
        self.by_name[topic.name] = topic
        self._ordered = None

    def remove(self, name: str) -> None:
        """Forgets a topic."""
        del self.by_name[name]
        self._ordered = None

    def between(self, lower: int, upper: int) -> list[Topic]:
        """The topics of ``lower <= position < upper``; a range up to the last position includes that too."""
        if self._ordered is None:
            self._ordered = sorted(self.by_name.values(), key=lambda topic: (topic.position, topic.name))
        end = LAST + 1 if upper == LAST else upper
        first = bisect_left(self._ordered, lower, key=lambda topic: topic.position)
        last = bisect_left(self._ordered, end, key=lambda topic: topic.position)
        return self._ordered[first:last]
