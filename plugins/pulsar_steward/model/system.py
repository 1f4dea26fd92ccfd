"""The systems that are looked at."""

from enum import StrEnum


class System(StrEnum):
    """System of a cluster; only Pulsar's clusters are ever changed."""

    PULSAR = "pulsar"
    KAFKA = "kafka"

    @property
    def called(self) -> str:
        """Its name in a sentence."""
        return self.value.capitalize()

    @property
    def only_looked_at(self) -> str:
        """That nothing in such clusters is ever changed, as a sentence."""
        return f"Steward only looks at {self.called} clusters: there is nothing to change, and nobody is asked."
