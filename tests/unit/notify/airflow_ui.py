"""Routes of the installed Airflow's pages, read from its compiled application: a file of minified JavaScript."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

QUOTED = r"[`\"']([^`\"']*)[`\"']"
PATH = re.compile(rf"\bpath:{QUOTED}")
WITH_TABS = re.compile(rf"\{{children:([\w$]+),element:[^{{}}]*\{{\}}\),path:{QUOTED}\}}")
"""A route whose tabs are a list with a name."""


def routes_below_runs() -> frozenset[str]:
    """Addresses of tabs within a run: ``dags/:dagId/runs/:runId/.../tab``.

    Task instances have such, mapped or not, as both share the list of their tabs.
    """
    return frozenset(
        f"{route}/{tab}"
        for script in _scripts()
        for tabs, route in WITH_TABS.findall(script)
        if route.startswith("dags/:dagId/runs/")
        for tab in _tabs(script, tabs)
    )


def leads_to(address: str, route: str) -> bool:
    """True if a route of the pages is that of an address."""
    parts, pattern = address.strip("/").split("/"), route.split("/")
    return len(parts) == len(pattern) and all(b.startswith(":") or a == b for a, b in zip(parts, pattern, strict=True))


def _scripts() -> list[str]:
    airflow = find_spec("airflow")
    assert airflow is not None
    assert airflow.origin is not None
    assets = Path(airflow.origin).parent / "ui" / "dist" / "assets"
    scripts = [each.read_text("utf-8") for each in sorted(assets.glob("index-*.js"))]
    assert scripts, f"no compiled pages in {assets}"
    return scripts


def _tabs(script: str, name: str) -> set[str]:
    """Paths within the list of this name; the list ends where its brackets are closed."""
    begins = re.search(rf"(?<![\w$]){re.escape(name)}=\[", script)
    assert begins is not None, name
    depth, end = 1, begins.end()
    while depth:
        depth += {"[": 1, "]": -1}.get(script[end], 0)
        end += 1
    return set(PATH.findall(script[begins.end() : end]))
