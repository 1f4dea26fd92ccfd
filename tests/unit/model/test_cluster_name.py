"""Which names a cluster can have in Steward's connections."""

from __future__ import annotations

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import require_cluster_name


@pytest.mark.parametrize("name", ["east", "a", "9", "east-1.prod_b", "E..1"])
def test_a_name_that_makes_a_part_of_a_path(name: str) -> None:
    """A valid cluster name is returned unchanged."""
    assert require_cluster_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "-a", "a b", "a\n", "é"])
def test_any_other_name_is_refused(name: str) -> None:
    """A name with other characters is refused, and the error tells which option gives another name."""
    words = "cluster name .*: use letters, digits, '.', '_' and '-' only"
    with pytest.raises(ConfigurationError, match=f"{words}$"):
        require_cluster_name(name)
    with pytest.raises(ConfigurationError, match=rf"{words} \(give one by --cluster\)$"):
        require_cluster_name(name, named_by="--cluster")
