"""A bookie's own HTTP port, off unless its settings say otherwise: by its admin API it is made read-only, and back."""

import httpx

from lab.admin import NO_CERTIFICATES, TIMEOUT_S
from lab.cluster import Lab
from lab.ports import LOOPBACK, Ports

METRICS = {
    "prometheusStatsHttpEnable": "true",
    "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
}
"""Settings of a bookie that tells its metrics there as well."""


def with_admin_api() -> dict[str, str]:
    """Settings of a bookie that answers its own admin API on a free port."""
    return {
        "httpServerEnabled": "true",
        "httpServerHost": LOOPBACK,
        "httpServerPort": str(Ports(None).take(LOOPBACK, "the bookie's own API")),
        "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
    }


def url_of(lab: Lab) -> str:
    """Address at which the bookie of a lab with such settings answers."""
    return f"http://{LOOPBACK}:{lab.state.spec.bookie_settings['httpServerPort']}"


def set_read_only(lab: Lab, *, on: bool) -> None:
    """Has the bookie refuse writes, or take them again."""
    with _bookie(lab) as bookie:
        bookie.put(_STATE, json={"readOnly": on}).raise_for_status()


def is_read_only(lab: Lab) -> bool:
    """True if the bookie reports that it refuses writes."""
    with _bookie(lab) as bookie:
        return bool(bookie.get(_STATE).raise_for_status().json()["readOnly"])


_STATE = "/api/v1/bookie/state/readonly"


def _bookie(lab: Lab) -> httpx.Client:
    return httpx.Client(base_url=url_of(lab), timeout=TIMEOUT_S, trust_env=False, verify=NO_CERTIFICATES)
