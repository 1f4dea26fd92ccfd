"""The key and the token of a lab with authentication."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

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


def is_signed(token: Path, key: Path) -> bool:
    signed, _, signature = token.read_text(encoding="utf-8").rpartition(".")
    return decoded(signature) == hmac.new(key.read_bytes(), signed.encode(), hashlib.sha256).digest()


def test_the_token_names_the_superuser_and_is_signed_with_the_key(secrets: Path) -> None:
    head, body, _ = tokens.token_file(secrets).read_text(encoding="utf-8").split(".")
    assert json.loads(decoded(head)) == {"alg": "HS256"}
    assert json.loads(decoded(body)) == {"sub": tokens.SUPERUSER}
    assert is_signed(tokens.token_file(secrets), tokens.key_file(secrets))


def test_only_the_owner_may_read_them(secrets: Path) -> None:
    assert [path.stat().st_mode & 0o077 for path in (secrets, *secrets.iterdir())] == [0, 0, 0]


def test_the_brokers_settings_hold_no_secret(secrets: Path) -> None:
    text = json.dumps(tokens.settings(secrets))
    assert tokens.key_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).read_text(encoding="utf-8") not in text
    key = tokens.key_file(secrets).read_bytes()
    for written in (base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode(), key.hex()):
        assert written.rstrip("=") not in text


def test_an_access_token_is_signed_with_the_issuers_key(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    tokens.make_key_pair(folder)
    public = load_der_public_key(
        Path(tokens.key_pair_settings(folder)["tokenPublicKey"].removeprefix("file://")).read_bytes()
    )
    assert isinstance(public, rsa.RSAPublicKey)
    head, body, signature = tokens.access_token(folder, 60, "urn:other").split(".")
    public.verify(decoded(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    claims = json.loads(decoded(body))
    assert json.loads(decoded(head)) == {"alg": "RS256"}
    assert (claims["aud"], claims[tokens.ROLE_CLAIM]) == ("urn:other", tokens.SUPERUSER)
    assert 50 < claims["exp"] - time.time() <= 60
    assert "exp" not in json.loads(decoded(tokens.token_file(folder).read_text(encoding="utf-8").split(".")[1]))
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0] * 4


def test_every_lab_has_a_key_of_its_own(secrets: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    tokens.make(others)
    assert is_signed(tokens.token_file(others), tokens.key_file(others))
    assert not is_signed(tokens.token_file(secrets), tokens.key_file(others))
