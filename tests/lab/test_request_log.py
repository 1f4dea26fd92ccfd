"""Changes by a client, read from brokers' request logs: nothing of anybody else's, and nothing twice."""

from __future__ import annotations

import pytest

from lab.request_log import changing_calls_in, essence

UNLOAD = "/admin/v2/namespaces/public/shop/0x00000000_0x40000000/unload"
TARGET = "destinationBroker=127.0.0.1%3A20912"


def line(method: str, address: str, status: int, client: str = "python-requests/2.32.5") -> str:
    """A line as Pulsar 4.0.7 writes it with the lab's logging."""
    asked = f'"{method} {address} HTTP/1.1" {status} 0 "-" "{client}" 5'
    return f"17:10:41.225 INFO RequestLog 127.0.0.1 - - [21/Nov/2026:17:10:41 +0000] {asked}\n"


def test_only_the_clients_own_changing_calls_are_told() -> None:
    log = "".join(
        [
            line("GET", "/admin/v2/brokers/health", 200),
            line("PUT", f"{UNLOAD}?{TARGET}", 204, "python-httpx/0.28.1"),
            line("DELETE", "/admin/v2/persistent/public/shop/t", 204, "Pulsar-Java-v4.0.7"),
            line("PUT", f"{UNLOAD}?{TARGET}", 307),
            line("PUT", f"{UNLOAD}?authoritative=true", 204),
            line("POST", "/admin/v2/namespaces/public/shop/retention", 500),
            "17:10:41.300 INFO SomethingElse PUT of no request\n",
        ]
    )
    assert changing_calls_in(log) == [
        f"PUT {UNLOAD}?authoritative=true",
        "POST /admin/v2/namespaces/public/shop/retention",
    ]


@pytest.mark.parametrize("query", ["", "?authoritative=true", f"?authoritative=false&{TARGET}", f"?{TARGET}"])
def test_a_redirected_call_is_the_same_call(query: str) -> None:
    assert essence(f"PUT {UNLOAD}{query}") == f"PUT {UNLOAD}?"


def test_what_a_call_asks_for_counts() -> None:
    quota = "POST /admin/v2/namespaces/public%2Fshop/backlogQuota"
    assert essence(f"{quota}?backlogQuotaType=message_age") == (
        "POST /admin/v2/namespaces/public/shop/backlogQuota?backlogQuotaType=message_age"
    )
    assert essence(f"{quota}?backlogQuotaType=message_age") != essence(f"{quota}?backlogQuotaType=destination_storage")
