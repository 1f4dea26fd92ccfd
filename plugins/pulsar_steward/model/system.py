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
