"""The key and the token of a lab with authentication."""

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from lab import tokens


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder with a fresh key and token."""
    folder = tmp_path / "secrets"
    tokens.make(folder)
    return folder


def decoded(part: str) -> bytes:
    """Base64url without its padding, as RFC 7515 has it."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_the_token_names_the_superuser_and_is_signed_with_the_key(secrets: Path) -> None:
    """Whoever has the key can verify the token."""
    head, body, signature = tokens.token_file(secrets).read_text(encoding="utf-8").split(".")
    expected = hmac.new(tokens.key_file(secrets).read_bytes(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert json.loads(decoded(head)) == {"alg": "HS256"}
    assert json.loads(decoded(body)) == {"sub": tokens.SUPERUSER}
    assert decoded(signature) == expected


def test_only_the_owner_may_read_them(secrets: Path) -> None:
    """Neither the folder nor a file in it is open to others."""
    assert [path.stat().st_mode & 0o077 for path in (secrets, *secrets.iterdir())] == [0, 0, 0]


def test_the_brokers_settings_hold_no_secret(secrets: Path) -> None:
    """The configuration says where key and token are, and spells neither out."""
    text = json.dumps(tokens.settings(secrets))
    assert tokens.key_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).read_text(encoding="utf-8") not in text


def test_every_lab_has_a_key_of_its_own(secrets: Path, tmp_path: Path) -> None:
    """A token of one lab opens no other."""
    tokens.make(tmp_path / "others")
    assert tokens.key_file(secrets).read_bytes() != tokens.key_file(tmp_path / "others").read_bytes()
