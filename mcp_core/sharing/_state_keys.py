"""`state_keys` as a text, such as an environment variable has it."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from typing import Final

__all__ = ["read_state_keys"]

_ONLY_NAME: Final = "key"  # of a key without a name
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]+")
_MIN_SIZE: Final = 32  # bytes, as `KeyRing` requires
_STANDARD: Final = str.maketrans("+/", "-_")  # to the alphabet for URLs

_CURE: Final = 'make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'


def read_state_keys(text: str) -> dict[str, bytes]:
    """Return the `state_keys` of a server from `text`, for example an environment variable::

        server = Server("notes", state_keys=read_state_keys(os.environ["NOTES_KEYS"]))

    It is one secret, or several as `NAME=SECRET,NAME=SECRET`, of which the first signs. A secret is
    base64url (RFC 4648, section 5) of at least 32 random bytes, with or without padding, as
    `secrets.token_urlsafe(32)` makes it; base64 is read too. A secret without a name has the name
    `key`.

    Raises:
        ValueError: it is something else. The text names the key by its place, and shows nothing of
            it.
    """
    items = [item.strip() for item in text.split(",")]
    if items == [""]:
        raise ValueError(f"there is no key; {_CURE}")
    keys: dict[str, bytes] = {}
    for place, item in enumerate(items, start=1):
        name, secret = _split(item, len(items))
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"key {place} has no valid name: write NAME=SECRET, where NAME has up to 32"
                " letters, digits, '-' and '_'"
            )
        if name in keys:
            raise ValueError(f"key {place} has the name of an earlier one: give it another")
        keys[name] = _decode(secret, place)
    return keys


def _split(item: str, count: int) -> tuple[str, str]:
    """Return the name and the secret of a key. The name is "" if it has to have one."""
    # Signs at the end are padding.
    if "=" in item.rstrip("="):
        name, _, secret = item.partition("=")
        return name.strip(), secret.strip()
    return _ONLY_NAME if count == 1 else "", item


def _decode(secret: str, place: int) -> bytes:
    digits = secret.rstrip("=").translate(_STANDARD)
    if not _SECRET.fullmatch(digits) or len(digits) % 4 == 1:
        raise ValueError(f"key {place} isn't base64url; {_CURE}")
    key = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    if len(key) < _MIN_SIZE:
        raise ValueError(
            f"key {place} has {len(key)} bytes, and {_MIN_SIZE} random ones are the least; {_CURE}"
        )
    return key
