"""A secret key and a superuser's token for a lab with authentication, in files that only their owner can read."""

import base64
import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

SUPERUSER = "admin"


def signed(secret: bytes, role: str) -> str:
    """A JSON Web Token (RFC 7519) that names ``role``, signed with HS256 and without an end date."""
    head, body = (_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": role}))
    signature = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_encoded(signature)}"


def make(folder: Path) -> None:
    """Writes a new key and the superuser's token into ``folder``, which must not exist."""
    folder.mkdir(mode=0o700)
    secret = secrets.token_bytes(32)
    write(key_file(folder), secret)
    write(token_file(folder), signed(secret, SUPERUSER).encode())


def key_file(folder: Path) -> Path:
    """File of the secret key."""
    return folder / "secret.key"


def token_file(folder: Path) -> Path:
    """File of the superuser's token."""
    return folder / "superuser.token"


def settings(folder: Path) -> dict[str, str]:
    """The broker's settings for token authentication; secrets are named by file, never spelled out."""
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": key_file(folder).as_uri(),
        "superUserRoles": SUPERUSER,
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": token_file(folder).as_uri(),
    }


def write(path: Path, content: bytes) -> None:
    """Writes a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
