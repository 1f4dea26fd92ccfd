"""Settings that cannot work are refused where they are made, without repeating a secret."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.settings import AdminSettings


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        ((), "give at least one"),
        (("broker:8080",), "is not an admin URL"),
        (("pulsar://broker:6650",), "is not an admin URL"),
        (("http://",), "is not an admin URL"),
        (("http://:8080",), "is not an admin URL"),
        (("http://broker:port",), "is not an admin URL"),
        (("http://broker:99999",), "is not an admin URL"),
        (("http://[broker",), "is not an admin URL"),
        (("http://user:hidden@broker:8080",), "broker:8080 holds a user or password"),
        (("ftp://user:hidden@broker:8080",), "broker:8080 holds a user or password"),
        (("user:hidden@broker:8080",), "broker:8080 holds a user or password"),
        (("http://user:hidden@",), "holds a user or password"),
    ],
)
def test_urls_that_cannot_work_are_refused(urls: tuple[str, ...], words: str) -> None:
    """An invalid URL is refused with an error that says what is wrong and shows no password."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        AdminSettings(urls)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "hidden\n", " hidden", "hid den", "hidden\r\nX-Other: 1", "hidden-ü"])
def test_a_token_that_no_header_carries_is_refused(token: str) -> None:
    """A token that a header cannot carry is refused with an error that does not show it."""
    with pytest.raises(ConfigurationError, match="is empty or holds white space") as caught:
        AdminSettings(("http://broker:8080",), SecretStr(token))
    assert "hidden" not in str(caught.value)


def test_a_slash_behind_an_address_does_no_harm() -> None:
    """A slash at the end of a URL is left out of the addresses that are called."""
    made = AdminSettings(("https://a:8443/", "https://b:8443"))
    assert made.schemes == {"https"}
    assert made.bases == ("https://a:8443", "https://b:8443")


def test_an_address_with_a_path_is_refused() -> None:
    """Calls and the token would go to the root of that host, where something else may be."""
    with pytest.raises(ConfigurationError, match=r"has a path \(/pulsar\).*Write https://b:8443"):
        AdminSettings(("https://a:8443", "https://b:8443/pulsar/"))
    with pytest.raises(ConfigurationError, match="the address of broker:8080 has a path"):
        address_map({"broker:8080": "https://b:8443/pulsar"})
