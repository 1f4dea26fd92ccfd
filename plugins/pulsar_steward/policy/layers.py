"""Overrides in a policy file: sections for one cluster, tenant or namespace; they override the file's top sections.

For each key the nearest value applies, in the order default, file, cluster, tenant, namespace. Validation always looks
at the merged section, so that thresholds which must be ordered are still ordered after merging.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsar_steward.checks.check import Scope
from pulsar_steward.checks.registry import BY_ID, CHECKS
from pulsar_steward.model.cluster import CLUSTER_NAME
from pulsar_steward.policy.names import ANY, TENANT
from pulsar_steward.policy.trouble import Place, PolicyTrouble, dotted, troubles_of, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel

Values = Mapping[str, Any]
Sections = Mapping[str, Values]
Layers = Mapping[str, Sections]
"""Sections by the name of a cluster, tenant or namespace."""
Models = Mapping[str, "type[BaseModel]"]

CLUSTERS, TENANTS, NAMESPACES = "clusters", "tenants", "namespaces"
KINDS = (CLUSTERS, TENANTS, NAMESPACES)
"""Top-level keys that hold overrides, in ascending precedence."""

NARROW = frozenset(info.section for info in CHECKS if info.scope is Scope.NAMESPACE)
"""Sections of checks that a tenant or a namespace may override, with all their keys."""

NARROW_KEYS: Mapping[str, frozenset[str]] = {"approval": frozenset({"never_ask"})}
"""Other sections, with the keys that a tenant or a namespace may override."""

_NAMES = {
    CLUSTERS: (CLUSTER_NAME, "a cluster's name"),
    TENANTS: (re.compile(TENANT), "a tenant's name"),
    NAMESPACES: (re.compile(f"{TENANT}/{TENANT}"), "`tenant/namespace`"),
}


class Layer(NamedTuple):
    """Sections as written in one place of a file."""

    place: tuple[str, ...]
    sections: Sections

    @property
    def words(self) -> str:
        """Name of the layer, such as ``tenant acme``."""
        return f"{self.place[0].removesuffix('s')} {self.place[1]}" if self.place else "file"


def is_namespace(name: str) -> bool:
    """True if a text can be the name of a namespace."""
    return _NAMES[NAMESPACES][0].fullmatch(name) is not None


def base_of(document: Values) -> Sections:
    """Sections at the top of a file."""
    return {name: values for name, values in document.items() if name not in KINDS}


def stack(document: Values, cluster: str | None = None, namespace: str | None = None) -> list[Layer]:
    """Layers that apply to a cluster, or a namespace in it, in ascending precedence; absent layers are left out.

    Args:
        document: A valid policy.
        cluster: Its name; None: layers of clusters are skipped.
        namespace: ``tenant/namespace``, or a tenant alone.
    """
    names = {CLUSTERS: cluster, TENANTS: namespace and namespace.partition("/")[0], NAMESPACES: namespace}
    found = [Layer((), base_of(document))]
    for kind, name in names.items():
        if name is not None and name in document.get(kind, {}):
            found.append(Layer((kind, name), document[kind][name]))
    return found


def merged(layers: Sequence[Layer]) -> dict[str, dict[str, Any]]:
    """Merges layers into sections."""
    names = dict.fromkeys(name for layer in layers for name in layer.sections)
    return {name: _values(layers, name) for name in names}


def layer_troubles(document: Values, models: Models) -> list[PolicyTrouble]:
    """Every problem of a document's overrides; sections at its top are not validated here."""
    shapes = [trouble for kind in KINDS if kind in document for trouble in _shape(kind, document[kind], models)]
    values = (
        trouble
        for layer in _layers(document)
        for name in layer.sections
        if _may_stand(name, layer.place[0], models)
        for below in _below(document, layer.place, name)
        for trouble in _merging([*below, layer], name, models[name])
    )
    return list(dict.fromkeys([*shapes, *_twins(document.get(CLUSTERS)), *values]))


def normalised(document: Values, models: Models) -> dict[str, Any]:
    """Normalises a valid document: overrides in JSON's types, without empty ones."""
    made: dict[str, Any] = dict(base_of(document))
    for layer in _layers(document):
        kind, name = layer.place
        for section, values in layer.sections.items():
            below = _below(document, layer.place, section)[0]
            whole = models[section].model_validate(_values([*below, layer], section)).model_dump(mode="json")
            if values:
                made.setdefault(kind, {}).setdefault(name, {})[section] = {key: whole[key] for key in values}
    return made


def _shape(kind: str, named: object, models: Models) -> Iterator[PolicyTrouble]:
    """Names and sections that are not valid at this level."""
    pattern, words = _NAMES[kind]
    if not isinstance(named, Mapping):
        yield PolicyTrouble((kind,), f"has to hold sections below {words}")
        return
    for name, sections in named.items():
        if not isinstance(name, str) or not pattern.fullmatch(name):
            yield PolicyTrouble((kind, str(name)), f"is not {words}{_hint(name)}", key=True)
        if not isinstance(sections, Mapping):
            yield PolicyTrouble((kind, str(name)), "has to hold sections")
            continue
        for section, values in sections.items():
            place = (kind, str(name), str(section))
            if not _may_stand(section, kind, models):
                yield _misplaced(place, models)
            elif not isinstance(values, Mapping):
                yield PolicyTrouble(place, "has to hold keys with values")
            elif kind != CLUSTERS and section in NARROW_KEYS:
                for key in values.keys() - NARROW_KEYS[section]:
                    only = ", ".join(sorted(NARROW_KEYS[section]))
                    words = f"cannot differ by {kind.removesuffix('s')}: of this section only {only} can"
                    yield PolicyTrouble((*place, str(key)), words, key=True)


def _twins(named: object) -> Iterator[PolicyTrouble]:
    """Names of clusters that differ only in upper and lower case; some stores of Airflow's connections ignore case."""
    first: dict[str, str] = {}
    for name in map(str, named) if isinstance(named, Mapping) else ():
        if (other := first.setdefault(name.casefold(), name)) != name:
            words = f"differs only in upper and lower case from {other}: use one name for one cluster"
            yield PolicyTrouble((CLUSTERS, name), words, key=True)


def _hint(name: object) -> str:
    if not isinstance(name, str):
        return ": YAML takes it for something else, put it into quotes"
    return f"; {ANY} is not understood here" if ANY in name else ""


def _misplaced(place: tuple[str, str, str], models: Models) -> PolicyTrouble:
    kind, _, section = place
    if section in KINDS:
        return PolicyTrouble(place, f"`{section}` stands at the top of the file only", key=True)
    if section not in models:
        return unknown(place[:2], section, models if kind == CLUSTERS else _narrow())
    if section.replace("_", "-") in BY_ID:
        why = f"the check {section.replace('_', '-')} looks at more than one namespace at a time"
    else:
        why = "it is no section of a check"
    return PolicyTrouble(
        place, f"cannot differ by {kind.removesuffix('s')}: {why}; set it at the top or by cluster", key=True
    )


def _may_stand(section: object, kind: str, models: Models) -> bool:
    return isinstance(section, str) and section in (models if kind == CLUSTERS else _narrow() & models.keys())


def _narrow() -> frozenset[str]:
    """Sections with at least one key that a tenant or a namespace may override."""
    return NARROW.union(NARROW_KEYS)


def _layers(document: Values) -> Iterator[Layer]:
    """Layers of a document, with the sections of a valid shape; other parts are skipped."""
    for kind in KINDS:
        named = document.get(kind)
        for name, sections in named.items() if isinstance(named, Mapping) else ():
            if isinstance(name, str) and isinstance(sections, Mapping):
                yield Layer((kind, name), {key: each for key, each in sections.items() if isinstance(each, Mapping)})


def _below(document: Values, place: tuple[str, ...], section: str) -> list[list[Layer]]:
    """Combinations of layers below an override: the file alone, and the file with each cluster's layer."""
    kind, name = place
    known = [layer for layer in _layers(document) if section in layer.sections]
    clusters = [[], *([layer] for layer in known if layer.place[0] == CLUSTERS)] if kind != CLUSTERS else [[]]
    tenant = [layer for layer in known if kind == NAMESPACES and layer.place == (TENANTS, name.partition("/")[0])]
    return [[Layer((), base_of(document)), *cluster, *tenant] for cluster in clusters]


def _values(layers: Sequence[Layer], section: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for layer in layers:
        values: object = layer.sections.get(section)
        found |= values if isinstance(values, Mapping) else {}
    return found


def _merging(layers: Sequence[Layer], section: str, model: type[BaseModel]) -> Iterator[PolicyTrouble]:
    """Problems of the last of these layers, merged over the others; problems of the others are left out."""
    *below, last = layers
    place: Place = (*last.place, section)
    known = {trouble.place for trouble in troubles_of(model, _values(below, section))}
    for trouble in troubles_of(model, _values(layers, section)):
        if trouble.place and trouble.place[0] in last.sections[section]:
            yield trouble._replace(place=(*place, *trouble.place))
        elif not trouble.place and () not in known:
            between = [dotted(layer.place) for layer in below if layer.place and section in layer.sections]
            over = f", over {' and '.join(between)}" if between else ""
            yield PolicyTrouble(place, f"{trouble.words}{over}", key=True)
