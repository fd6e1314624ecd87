"""What the database keeps only in cipher: secrets that have to be read again, such as those of authenticator apps."""

from __future__ import annotations

import base64
import re

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from klerai.env import BadSetting, Environment

KEY_BYTES = 32
_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")


class Unreadable(Exception):
    """None of the keys fits; str(error) says to the operator what to do."""

    def __init__(self) -> None:
        super().__init__(
            "A stored secret cannot be read: the key it was written with is not in KLERAI_ENCRYPTION_KEYS."
        )


def encryption_keys(env: Environment, secret_key: str, name: str = "KLERAI_ENCRYPTION_KEYS") -> list[str]:
    """The first encrypts, all decrypt.

    The one derived from SECRET_KEY is the only one when none is set, and the last one otherwise, so
    that what was written before the setting was made stays readable.
    """
    keys = [word.strip() for word in env.secret(name).split(",") if word.strip()]
    for number, key in enumerate(keys, 1):
        if not _KEY.fullmatch(key):
            raise BadSetting(
                name,
                f"has something else than a Fernet key in place {number}; a key is 32 random bytes in URL-safe base64.",
            )
    return [*keys, _derived(secret_key)]


def encrypt(text: str) -> str:
    return _keyring().encrypt(text.encode()).decode()


def decrypt(cipher: str) -> str:
    """Raises Unreadable."""
    try:
        return _keyring().decrypt(cipher.encode()).decode()
    except InvalidToken as error:
        raise Unreadable from error


def _keyring() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def _derived(secret_key: str) -> str:
    derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=b"klerai stored secrets")
    return base64.urlsafe_b64encode(derivation.derive(secret_key.encode())).decode()
