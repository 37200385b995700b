"""The record of one call of a tool, for a log that others may read.

1. Arguments are kept as a digest, or redacted: values are replaced if their member's name or their
   form says that they are secrets.
2. Redaction is incomplete: it doesn't find a secret in plain words. Where that matters, record
   digests with a key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcp_core._known_secrets import KnownSecrets
from mcp_core._secret_patterns import SECRET_FORM, is_secret_name
from mcp_core._text import shorten_text

from ._canonical_json import canonical_json

__all__ = [
    "AuditRecord",
    "CallOutcome",
    "digest_arguments",
    "encode_audit_record",
    "has_secret_form",
    "redact_arguments",
    "redact_text",
]

# "ok"; "tool error": a result with `isError`; "error": no result; "denied": never sent.
CallOutcome: TypeAlias = Literal["ok", "tool error", "error", "denied", "cancelled", "timeout"]

REDACTED: Final = "(redacted)"
_MAX_TEXT: Final = 1000  # characters of a text that are kept
_MAX_VALUES: Final = 1000  # values of all arguments together
_MAX_DEPTH: Final = 20


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a tool.

    Attributes:
        time: when it began, in seconds since 1970.
        server: the server's name.
        tool: the tool's name at the server.
        outcome: how it ended.
        duration: the seconds that it took.
        approved_by: who or what allowed or denied it, as `CallDecision.reason`.
        definition: the tool definition's digest.
        arguments_digest: the `digest_arguments`, if the arguments aren't kept.
        arguments: the `redact_arguments`, if they are.
        error: the text of an error, redacted like a text of the arguments.
    """

    time: float
    server: str
    tool: str
    outcome: CallOutcome
    duration: float
    approved_by: str = ""
    definition: str = ""
    arguments_digest: str = ""
    arguments: Any | UnsetType = UNSET
    error: str = ""


def encode_audit_record(record: AuditRecord) -> bytes:
    """Return `record` as one line of JSON, with its line feed.

    Raises:
        ValueError: a text has half of a surrogate pair.
    """
    return msgspec.json.encode(record) + b"\n"


def digest_arguments(arguments: Any, key: bytes | None = None) -> str:
    """Return a digest of the canonical JSON of `arguments`.

    Without `key` it is their SHA-256, from which short secrets can be guessed. With one it is an
    HMAC (RFC 2104), which only those who have the key can compare.

    Raises:
        ValueError, TypeError: as `canonical_json`.
    """
    data = canonical_json(arguments)
    if key is None:
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    return f"hmac-sha256:{hmac.new(key, data, 'sha256').hexdigest()}"


def redact_arguments(arguments: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a copy of `arguments` without secrets, and of a size for a log.

    Args:
        arguments: any JSON value.
        secrets: known secrets, such as the values of variables. Those below 6 characters don't
            count.

    Members with names such as `password` lose their values, and texts the parts that look like
    tokens. Long texts are cut, and so are very many or deeply nested values.
    """
    return _Redaction(_known(frozenset(secrets))).value(arguments, 0)


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Redact `text` as `redact_arguments` does, but don't shorten it.

    Args:
        text: any text.
        secrets: known secrets. Those below 6 characters don't count.
    """
    return _redact(text, _known(frozenset(secrets)))


@lru_cache(8)
def _known(secrets: frozenset[str]) -> KnownSecrets:
    """Return the search for a server's secrets, cached for the server's next call."""
    return KnownSecrets(secrets)


def _redact(text: str, known: KnownSecrets) -> str:
    return SECRET_FORM.sub(REDACTED, known.hide(text, lambda _: REDACTED) if known else text)


def has_secret_form(text: str) -> bool:
    """True if a part of `text` has the form of a known kind of token or key."""
    return SECRET_FORM.search(text) is not None


class _Redaction:
    """One pass over a call's arguments. It counts how many values may still be kept."""

    def __init__(self, known: KnownSecrets) -> None:
        self._known = known
        self._left = _MAX_VALUES

    def value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            if depth >= _MAX_DEPTH:
                return "(nested too deeply)"
            return self._members(value, depth)
        if isinstance(value, list | tuple):
            if depth >= _MAX_DEPTH:
                return "(nested too deeply)"
            items: list[Any] = []
            for item in value:
                if self._left <= 0:
                    items.append(f"({len(value) - len(items)} more)")
                    break
                items.append(self.value(item, depth + 1))
            return items
        return value

    def _members(self, members: dict[str, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for count, (name, value) in enumerate(members.items()):
            if self._left <= 0:
                found["…"] = f"({len(members) - count} more)"
                break
            # An empty value stays: it shows that there was no secret.
            is_secret = is_secret_name(name) and value not in (None, "", [], {})
            shown = self.text(name)
            found[shown] = REDACTED if is_secret else self.value(value, depth + 1)
        return found

    def text(self, text: str) -> str:
        # Half of a surrogate pair could not be written to the log.
        text = text.encode("utf-8", "backslashreplace").decode()
        # Cut after the search: half of a secret would not be found.
        return shorten_text(_redact(text, self._known), _MAX_TEXT)
