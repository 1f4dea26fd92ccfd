"""Bookies' own HTTP ports, off unless settings say otherwise: their admin API makes one read-only, and back."""

import httpx

from lab.admin import NO_CERTIFICATES, TIMEOUT_S
from lab.cluster import Lab
from lab.ports import LOOPBACK

METRICS = {
    "prometheusStatsHttpEnable": "true",
    "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
}
"""Settings of a bookie that tells its metrics there as well."""


ADMIN_API = {
    "httpServerEnabled": "true",
    "httpServerHost": LOOPBACK,
    "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
}
"""Settings of bookies that answer their own admin API, each on a free port."""


def url_of(lab: Lab, number: int = 1) -> str:
    """Address at which a bookie of a lab with such settings answers, by its number from 1."""
    return f"http://{LOOPBACK}:{lab.state.bookies[number - 1].api_port}"


def metrics_urls(lab: Lab) -> tuple[str, ...]:
    """Values of `collect.metrics_urls` for the bookies of a lab that tell their metrics, also for those that ended."""
    if lab.state.spec.bookie_settings.get("prometheusStatsHttpEnable") != "true":
        return ()
    return tuple(f"bookie={url_of(lab, number)}/metrics" for number in range(1, lab.state.spec.bookies + 1))


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
