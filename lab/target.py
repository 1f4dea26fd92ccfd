"""Interface of a Pulsar that can be practised on, be it real processes or the simulator.

The demo, the live tests and the contract suite are written against this, so that the same lines run on both.
"""

from typing import Protocol


class PulsarTarget(Protocol):
    """A Pulsar cluster on loopback that a test or the demo may break and repair."""

    @property
    def cluster(self) -> str:
        """The cluster's name in its own configuration (``clusterName``)."""

    @property
    def admin_urls(self) -> tuple[str, ...]:
        """``http://host:port`` of every broker that was started, in order of starting."""

    @property
    def service_url(self) -> str | None:
        """``pulsar://host:port,...`` for clients; None where nothing speaks the binary protocol (the simulator)."""

    @property
    def token(self) -> str | None:
        """A superuser's token, or None where authentication is off."""

    def owned_bundles(self) -> dict[str, tuple[str, ...]]:
        """Broker id (``host:webport``) to the sorted bundles it owns (``tenant/ns/0x.._0x..``); loads nothing."""

    def tc_placement(self) -> dict[str, int]:
        """Broker id to the number of transaction coordinators it holds, every broker that answers included."""

    def pile_up_tcs(self, broker_id: str | None = None) -> str:
        """Moves every transaction coordinator onto one broker (the first by default) and returns its id."""
