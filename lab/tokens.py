"""Keys and a superuser's token for a lab with authentication, in files that only their owner can read."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

SUPERUSER = "admin"
KEY_BITS = 2048

AUDIENCE = "urn:pulsar:lab"
"""Audience of access tokens, without which brokers take none."""

ROLE_CLAIM = "role"
"""Claim of access tokens that holds the role; Pulsar's default is ``sub``."""


def signed(secret: bytes, role: str) -> str:
    """A JSON Web Token (RFC 7519) that names ``role``, signed with HS256 and without an end date."""
    return _token("HS256", {"sub": role}, lambda text: hmac.new(secret, text, hashlib.sha256).digest())


def access_token(folder: Path, lives_s: float | None, audience: str = AUDIENCE, role: str = SUPERUSER) -> str:
    """A JSON Web Token as an issuer gives it, signed with RS256.

    Args:
        folder: Holds the issuer's private key.
        lives_s: Seconds until it ends; less than nothing: it has ended; None: it never does.
        audience: Who shall take it.
        role: The role that it names.
    """
    claims: dict[str, object] = {"aud": audience, ROLE_CLAIM: role, "jti": secrets.token_hex(8)}
    if lives_s is not None:
        claims["exp"] = int(time.time() + lives_s)
    key = cast("rsa.RSAPrivateKey", load_pem_private_key(_issuer_key(folder).read_bytes(), None))
    return _token("RS256", claims, lambda text: key.sign(text, padding.PKCS1v15(), SHA256()))


def make(folder: Path) -> None:
    """Writes a new secret key, and the superuser's token that is signed with it, into ``folder``."""
    folder.mkdir(mode=0o700, exist_ok=True)
    secret = secrets.token_bytes(32)
    write(key_file(folder), secret)
    write(token_file(folder), signed(secret, SUPERUSER).encode())


def make_key_pair(folder: Path) -> None:
    """Writes an issuer's key pair, and an access token of the superuser that never ends, into ``folder``."""
    folder.mkdir(mode=0o700, exist_ok=True)
    key = rsa.generate_private_key(65537, KEY_BITS)
    write(_issuer_key(folder), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    write(_public_key(folder), public)
    write(token_file(folder), access_token(folder, None).encode())


def key_file(folder: Path) -> Path:
    """File of the secret key."""
    return folder / "secret.key"


def token_file(folder: Path) -> Path:
    """File of the superuser's token."""
    return folder / "superuser.token"


def settings(folder: Path) -> dict[str, str]:
    """The broker's settings for token authentication; secrets are named by file, never spelled out."""
    return {"tokenSecretKey": key_file(folder).as_uri(), **_by_token(folder)}


def key_pair_settings(folder: Path) -> dict[str, str]:
    """The same for access tokens that an issuer signs, for the lab's audience and with the role in a claim."""
    return {
        "tokenPublicKey": _public_key(folder).as_uri(),
        "tokenAuthClaim": ROLE_CLAIM,
        "tokenAudienceClaim": "aud",
        "tokenAudience": AUDIENCE,
        **_by_token(folder),
    }


def _by_token(folder: Path) -> dict[str, str]:
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "superUserRoles": SUPERUSER,
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": token_file(folder).as_uri(),
    }


def write(path: Path, content: bytes) -> None:
    """Writes a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _token(algorithm: str, claims: Mapping[str, object], sign: Callable[[bytes], bytes]) -> str:
    head, body = (_encoded(json.dumps(part).encode()) for part in ({"alg": algorithm}, claims))
    return f"{head}.{body}.{_encoded(sign(f'{head}.{body}'.encode()))}"


def _issuer_key(folder: Path) -> Path:
    return folder / "issuer.key.pem"


def _public_key(folder: Path) -> Path:
    """DER, as brokers read it."""
    return folder / "issuer.public.der"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
