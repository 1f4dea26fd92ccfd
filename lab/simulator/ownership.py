"""Owners of bundles, counted as they change, so that a cluster of a million partitions answers at once."""

from collections import Counter


class Ownership:
    """Bundles (``tenant/ns/0x.._0x..``) and the ids of their owners."""

    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._owned: dict[str, set[str]] = {}
        self._in_namespace: Counter[tuple[str, str]] = Counter()

    def owner(self, bundle: str) -> str | None:
        """Owner of a bundle; None: nobody."""
        return self._owner.get(bundle)

    def owned_by(self, broker_id: str) -> tuple[str, ...]:
        """The bundles of a broker, sorted."""
        return tuple(sorted(self._owned.get(broker_id, ())))

    def load_of(self, broker_id: str, namespace: str) -> tuple[int, int]:
        """Number of bundles that a broker owns: of a namespace, and in all."""
        return self._in_namespace[broker_id, namespace], len(self._owned.get(broker_id, ()))

    def give(self, bundle: str, broker_id: str) -> None:
        """Makes the broker the owner, whoever was it before."""
        self.release(bundle)
        self._owner[bundle] = broker_id
        self._owned.setdefault(broker_id, set()).add(bundle)
        self._in_namespace[broker_id, _namespace(bundle)] += 1

    def release(self, bundle: str) -> str | None:
        """Nobody owns the bundle any more; returns who did."""
        broker_id = self._owner.pop(bundle, None)
        if broker_id is not None:
            self._owned[broker_id].discard(bundle)
            self._in_namespace[broker_id, _namespace(bundle)] -= 1
        return broker_id

    def release_all(self, broker_id: str) -> None:
        """The broker owns nothing any more."""
        for bundle in self.owned_by(broker_id):
            self.release(bundle)


def _namespace(bundle: str) -> str:
    return bundle.rpartition("/")[0]
