"""Hide secrets in the lines of a trace, so that a trace can be attached to a bug report.

1. Only values change in a message, and a value keeps its type.
2. Values that pair messages stay comparable. Session ids, task ids, `requestState`, query values
   and random-looking parts of paths become pseudonyms of the same length. Equal values get equal
   pseudonyms in one file, made with a key that isn't written.
3. Tools' arguments and results are kept: without them a trace says little. Name secret ones with
   JSON pointers.

This is a net, not a wall: a secret in plain words isn't found.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from mcp_core._known_secrets import KnownSecrets
from mcp_core._launch_secrets import (
    PAIR_MARKS,
    QUERY_PART,
    URL_IN_TEXT,
    hide_pairs,
    redact_words,
)
from mcp_core._secret_patterns import SECRET_FORM, is_secret_name, looks_random
from mcp_core.http.wire._mcp_headers import decode_value, encode_value

from ._format import HttpHead, TraceLine
from ._json_redaction import (
    decode_string,
    encode_string,
    redacted_text,
    replace_values,
    values_of,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from ._json_redaction import Replacement, Value

    Headers: TypeAlias = tuple[tuple[str, str], ...]
    # A message without secrets, and the JSON pointers of what was redacted.
    Redacted: TypeAlias = tuple[str, tuple[str, ...]]

__all__ = ["Redactor"]

# An id with fewer bits isn't a secret: it can be guessed. Its pseudonym might not be unique.
_MIN_ID_BITS: Final = 32.0
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
_MAX_PSEUDONYMS: Final = 1000  # that are remembered
_MAX_HEADERS: Final = 200  # the same; a long one is some KiB
_MAX_ELICITATIONS: Final = 1000  # requests whose responses are awaited

# A member with a task id. In a text that quotes JSON, the quotation marks have backslashes.
_TASK_ID: Final = re.compile(r'("taskId"\s*+:\s*+)("[^"\\]*+(?:\\.[^"\\]*+)*+"?+)', re.DOTALL)
_TASK_IDS: Final = "taskIds"  # of a subscription
_RESULT: Final = '"result"'
_ACTION: Final = '"action"'
_ELICITATION: Final = "elicitation"
_ELICIT: Final = "elicitation/create"
# A member `url`, except a capability's, as in `"elicitation":{"form":{},"url":{}}`.
_URL: Final = re.compile(r'"url"(?!\s*+:\s*+\{\s*+\}\s*+(?:\}|,\s*+"\w++"\s*+:))')

_SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "dpop"}
)
_WITH_SCHEME: Final = frozenset({"authorization", "proxy-authorization"})
_WITH_URL: Final = frozenset({"location", "content-location", "referer"})
# Headers that nearly every request has, and that never have a secret.
_PLAIN_HEADERS: Final = frozenset(
    """
    accept accept-encoding cache-control connection content-length content-type date host
    keep-alive mcp-method mcp-protocol-version origin server transfer-encoding user-agent vary
    """.split()
)
# What only requests and responses of OAuth have, or other logins. A proxy passes them on as well.
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_LOGIN_MEMBER: Final = re.compile(
    r'"(?:access_token|refresh_token|id_token|client_secret|registration_access_token|grant_type'
    r"|device_code|user_code|code_verifier|client_assertion|assertion|subject_token|redirect_uris"
    r'|password|token)"\s*:'
)
_MAX_LOGINS: Final = 1000  # exchanges whose response is awaited
# One of these is in every text in which the patterns find something, in lower case. Most texts have
# none, which is found out sooner: a search with a pattern keeps other threads from running.
_FORM_MARKS: Final = (
    *("-----begin", "bearer", "basic", "eyj", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "glpat-"),
    *("npm_", "pypi-", "hf_", "xox", "akia", "asia", "aiza", "://", "github_pat_"),
)
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_MAX_KEY_LINES: Final = 200


class Redactor:
    """Hides the secrets of one trace.

    Args:
        key: random bytes of this file, for pseudonyms. They must not be written.
        pointers: JSON pointers (RFC 6901) of values to hide in each message, such as
            `/params/arguments/password`.
        secrets: known secrets, which are hidden everywhere. Those below 6 characters don't
            count.

    Attributes:
        redacted: what is hidden, for the trace's header.

    Raises:
        ValueError: a pointer isn't one.
    """

    def __init__(
        self, key: bytes, pointers: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._key = key
        self._known = KnownSecrets(secrets) or None
        pointers = list(pointers)
        self._pointers = frozenset(map(_parse_pointer, pointers))
        self.redacted: tuple[str, ...] = (
            *(f"header:{name}" for name in sorted(_SECRET_HEADERS)),
            "header:mcp-session-id",
            "url:path",
            "url:query",
            "url:user",
            "command:secret",
            "message:taskId",
            "message:requestState",
            "message:elicitation",
            "stderr:token",
            "oauth",
            *(("secret",) if self._known is not None else ()),
            *(f"pointer:{pointer}" for pointer in pointers),
        )
        self._pseudonyms: dict[str, str] = {}
        self._ids: dict[str, str] = {}  # the same for ids, of which short ones are kept
        self._id_tokens: dict[str, str] = {}  # the same for ids as JSON strings
        self._headers: dict[tuple[str, str], tuple[str, str]] = {}
        self._heads: dict[HttpHead, HttpHead] = {}
        self._targets: dict[str, str] = {}
        # The requests for elicitation that have no response yet: conversation and id.
        self._elicitations: dict[tuple[int, str], None] = {}
        self._logins: dict[int, None] = {}  # exchanges of OAuth that have no response yet
        self._key_lines = 0  # lines of stderr that may still belong to a private key

    # -- Lines -------------------------------------------------------------------------------------

    def redact_line(self, line: TraceLine) -> TraceLine:
        """Return `line` without secrets; the same object if it has none."""
        if line.http is not None and self._is_login(line, line.http):
            line = self._without_body(line)
        raw = line.raw
        if raw is None and line.data is not None:
            # Bytes that aren't UTF-8 survive as halves of surrogate pairs.
            raw = line.data.decode("utf-8", "surrogateescape")
        elif raw is not None and line.sse is not None and line.sse.event == "endpoint":
            line = replace(line, raw=self.redact_url(raw))
            raw = None
        if raw is not None:
            found = self._redact_message(raw, line.conversation)
            if found is not None:
                line = self._with_message(line, *found)
        if line.http is not None:
            head = self._redact_head(line.http)
            if head != line.http:
                line = replace(line, http=head)
        if line.text is not None:
            text = self.redact_text(line.text)
            if line.kind == "stderr":
                text = self._redact_stderr(text)
            line = replace(line, text=text)
        if self._known is not None:
            line = self._redact_fields(line)
        return line

    def _redact_fields(self, line: TraceLine) -> TraceLine:
        """Hide known secrets in the short texts of a line."""
        sse, close = line.sse, line.websocket
        if sse is not None and (sse.id or sse.event):
            id = None if sse.id is None else self.hide_known(sse.id)
            line = replace(line, sse=replace(sse, id=id, event=self.hide_known(sse.event)))
        if close is not None and close.reason:
            line = replace(line, websocket=replace(close, reason=self.hide_known(close.reason)))
        return line

    def _redact_stderr(self, text: str) -> str:
        if "://" in text:
            text = URL_IN_TEXT.sub(lambda match: self.redact_url(match[0]), text)
        return hide_pairs(text, _redacted) if _has_any(PAIR_MARKS, text.lower()) else text

    def _is_login(self, line: TraceLine, head: HttpHead) -> bool:
        """True if the body of a request or response belongs to OAuth or another login."""
        raw = line.raw
        if raw is not None and '"jsonrpc"' in raw:
            return False  # nearly every body ends here
        is_response = bool(head.status)
        if is_response and line.exchange in self._logins:
            del self._logins[line.exchange]
            return True
        if raw is None and line.data is None:
            return False
        type = next((value for name, value in head.headers if name == "content-type"), "").lower()
        if is_response and head.status < 300 and type.startswith("text/html"):
            return True  # an HTML page for a user, such as a form with a code
        found = (not is_response and type.startswith(_FORMS)) or (
            raw is not None and _LOGIN_MEMBER.search(raw) is not None
        )
        if found and not is_response:
            self._logins[line.exchange] = None
            if len(self._logins) > _MAX_LOGINS:
                del self._logins[next(iter(self._logins))]
        return found

    def _without_body(self, line: TraceLine) -> TraceLine:
        body = line.data if line.raw is None else line.raw
        return line if body is None else self._with_message(line, redacted_text(len(body)), ("",))

    def _with_message(self, line: TraceLine, text: str, pointers: tuple[str, ...]) -> TraceLine:
        if line.truncated is not None:
            # A short secret can be found from its digest.
            line = replace(line, truncated=replace(line.truncated, sha256=""))
        if line.raw is not None:
            return replace(line, raw=text, redacted=pointers)
        return replace(line, data=text.encode("utf-8", "surrogateescape"), redacted=pointers)

    def redact_text(self, text: str) -> str:
        """Return `text`, one line such as of stderr, without what looks like a token."""
        if self._key_lines:
            self._key_lines = 0 if "-----END" in text else self._key_lines - 1
            return redacted_text(len(text))
        text = self.hide_known(text)
        if not _may_have_form(text):
            return text
        if _PRIVATE_KEY.search(text) and "-----END" not in text:
            self._key_lines = _MAX_KEY_LINES
        return SECRET_FORM.sub(lambda match: redacted_text(len(match[0])), text)

    def hide_known(self, text: str) -> str:
        """Return `text` without the known secrets."""
        return text if self._known is None else self._known.hide(text, _redacted)

    # -- Commands and URLs -------------------------------------------------------------------------

    def redact_command(self, words: Sequence[str]) -> list[str]:
        """Return a command's `words` without secrets.

        Secrets are words after an option such as `--api-key`, values of variables and headers with
        such names, parts of URLs, and text that looks like a token.
        """
        return redact_words(words, _redacted, self._redact_word)

    def _redact_word(self, word: str) -> str:
        if "://" in word:
            before, url = _split_url(word)
            return before + self.redact_url(url)
        return self.redact_text(word)

    def redact_url(self, url: str) -> str:
        """Return a URL without user info, with pseudonyms in its query and for parts of its path.

        Those are the parts between slashes that look random, or have known secrets. The fragment is
        treated as the query. `url` may be relative, and any text.
        """
        end = min((at for at in (url.find("?"), url.find("#")) if at >= 0), default=len(url))
        before, after = url[:end], url[end:]
        scheme, mark, rest = before.partition("://")
        if mark:
            authority, slash, path = rest.partition("/")
            host, _, port = authority.rpartition(":")
            if "@" in authority:
                authority = f"redacted@{authority.rpartition('@')[2]}"
            elif "@" in url and host and not port.isdigit() and not port.endswith("]"):
                # A password with an unencoded `/`, `?` or `#`: the authority is its beginning.
                authority, path = "redacted", path.rpartition("@")[2]
            before = f"{scheme}{mark}{authority}{slash}{self._redact_path(path)}"
        else:
            before = self._redact_path(before)
        # What is left is in a host or a name, or goes over several parts.
        return self.hide_known(before + self._redact_query(after))

    def _redact_path(self, path: str) -> str:
        parts = path.split("/")
        for place, part in enumerate(parts):
            if looks_random(part) or self._has_known(part):
                parts[place] = self._pseudonym(part.replace("%", "x"))
        return "/".join(parts)

    def _redact_query(self, query: str) -> str:
        """Replace the values of a query, and all of a part that isn't a pair."""

        def hide(match: re.Match[str]) -> str:
            name, equals, value = match[0].partition("=")
            if not equals:
                name, value = "", name
            # An escape such as %2F would no longer be one.
            return name + equals + self._pseudonym(value.replace("%", "x"))

        return QUERY_PART.sub(hide, query)

    # -- Heads -------------------------------------------------------------------------------------

    def _redact_head(self, head: HttpHead) -> HttpHead:
        """Return a head without secrets, and remember it: many requests have the same one."""
        found = self._heads.get(head)
        if found is not None:
            return found
        target = self._targets.get(head.target)
        if target is None:
            target = self.redact_url(head.target)
            if len(self._targets) >= _MAX_HEADERS:
                self._targets.clear()
            self._targets[head.target] = target
        headers = self._redact_headers(head.headers)
        found = replace(head, target=target, headers=headers)
        if len(self._heads) >= _MAX_HEADERS:
            self._heads.clear()
        self._heads[head] = found
        return found

    def _redact_headers(self, headers: Headers) -> Headers:
        redacted = self._headers
        pairs = []
        method = ""
        for pair in headers:
            pairs.append(redacted.get(pair) or self._redact_pair(pair))
            if pair[0] == "mcp-method":
                method = pair[1]
        if method.startswith("tasks/"):  # then `mcp-name` is a task id
            pairs = [
                (name, self._redact_task_name(value)) if name == "mcp-name" else shown
                for (name, value), shown in zip(headers, pairs, strict=True)
            ]
        return tuple(pairs)

    def _redact_pair(self, pair: tuple[str, str]) -> tuple[str, str]:
        """Redact a header, and remember it: most headers are the same in every request."""
        name, value = pair
        if name in _PLAIN_HEADERS:
            found = (name, self.hide_known(value))
        else:
            found = (self.hide_known(name), self.redact_header(name, value))
        if len(self._headers) >= _MAX_HEADERS:
            self._headers.clear()
        self._headers[pair] = found
        return found

    def _redact_task_name(self, value: str) -> str:
        try:
            id = decode_value(value.encode("latin-1"))
            return encode_value(self.pseudonym_of_id(id)).decode("ascii")
        except ValueError:
            return self.pseudonym_of_id(value)

    def redact_header(self, name: str, value: str) -> str:
        """Return the `value` of the header `name`, which is in lower case, without secrets."""
        if name == "mcp-session-id":
            return self.pseudonym_of_id(value)
        if name in _SECRET_HEADERS or is_secret_name(name):
            scheme, space, rest = value.partition(" ")
            if name in _WITH_SCHEME and space:
                return f"{scheme} {redacted_text(len(rest))}"
            return redacted_text(len(value))
        if name.startswith("mcp-param-") and self._pointers:
            return redacted_text(len(value))  # it repeats an argument, which may be hidden
        if name in _WITH_URL:
            return self.redact_url(value)
        # Such as `www-authenticate`, with the address of metadata. A header that repeats the
        # message stays as it is there: a judge would find a difference that no side has made.
        if "://" in value and not name.startswith(("mcp-name", "mcp-param-")):
            value = URL_IN_TEXT.sub(lambda match: self.redact_url(match[0]), value)
        value = self.hide_known(value)
        return SECRET_FORM.sub(lambda match: redacted_text(len(match[0])), value)

    # -- Messages ----------------------------------------------------------------------------------

    def _redact_message(self, text: str, conversation: int) -> Redacted | None:
        """Return a message without secrets, or None if it has none.

        Nearly every message has none of the names that are looked for. `\\u` may spell any name.
        One character is found many times faster than several, so a rare one of each name is looked
        for first.
        """
        has_task_id = "I" in text and "taskId" in text
        if (
            ("\\" in text and "\\u" in text)
            or ("S" in text and "requestState" in text)
            or ("R" in text and "inputResponses" in text)
            or (_ELICITATION in text and (has_task_id or _may_elicit(text)))
            or _ACTION in text
            or self._pointers
            or (self._elicitations and (has_task_id or _RESULT in text))
            or (has_task_id and _TASK_IDS in text)
            or self._has_known(text)
        ):
            return self._redact_values(text, conversation)
        if has_task_id:
            shown = _TASK_ID.sub(self._replace_task_id, text)
            return None if shown == text else (shown, ())
        return None

    def _has_known(self, text: str) -> bool:
        return self._known is not None and self._known.found_in(text)

    def _redact_values(self, text: str, conversation: int) -> Redacted | None:
        """Do what `_redact_message` does, by a scan of `text`."""
        has_elicitation = _ELICITATION in text or "\\u" in text
        hides_content = (
            has_elicitation or _ACTION in text or bool(self._elicitations)
        ) and self._is_elicited(text, conversation)
        pointers = self._pointers

        def choose(value: Value, token: str) -> Replacement:
            path = value.path
            name = path[-1] if path else ""
            below = path[1:] if path and isinstance(path[0], int) else path  # in a batch
            if pointers and tuple(map(str, below)) in pointers:
                return True
            if not value.is_container and self._has_known(token):
                return True
            is_id = name == "taskId" or (len(path) > 1 and path[-2] == _TASK_IDS)
            if (is_id or name == "requestState") and not value.is_container:
                secret = decode_string(token)
                if is_id:
                    new = self.pseudonym_of_id(secret)
                else:
                    new = self._pseudonym(secret)
                return None if new == secret or not token.startswith('"') else new
            if name == "requestState":
                return True
            if name == "content" and (
                "inputResponses" in below or (hides_content and below == ("result", "content"))
            ):
                return True
            if name == "url" and has_elicitation and token.startswith('"'):
                url = decode_string(token)
                new = self.redact_url(url)
                return None if new == url else new
            return None

        shown, redacted = replace_values(text, choose, self._has_known)
        # What is left is in a name, or in a line that isn't JSON.
        shown = self.hide_known(shown)
        return None if shown is text else (shown, redacted)

    def _replace_task_id(self, match: re.Match[str]) -> str:
        name, token = match.groups()
        found = self._id_tokens.get(token)
        if found is None:
            id = decode_string(token)
            pseudonym = self.pseudonym_of_id(id)
            found = token if pseudonym == id else encode_string(pseudonym)
            if len(self._id_tokens) >= _MAX_PSEUDONYMS:
                self._id_tokens.clear()
            self._id_tokens[token] = found
        return match[0] if found == token else name + found

    def _is_elicited(self, text: str, conversation: int) -> bool:
        """Note a request for elicitation, and return True if `text` may be the response to one."""
        ids: dict[tuple[str | int, ...], str] = {}
        requests: list[tuple[str | int, ...]] = []
        results: list[tuple[str | int, ...]] = []
        has_action = False
        for value in values_of(text):
            path = value.path
            if len(path) > 3 or not path:
                continue
            prefix = path[:1] if isinstance(path[0], int) else ()
            below = path[len(prefix) :]
            if below == ("id",):
                ids[prefix] = text[value.start : value.end]
            elif below == ("method",):
                if decode_string(text[value.start : value.end]) == _ELICIT:
                    requests.append(prefix)
            elif below == ("result",):
                results.append(prefix)
            elif below == ("result", "action"):
                has_action = True
        for prefix in requests:
            if prefix in ids:
                self._elicitations[conversation, ids[prefix]] = None
        while len(self._elicitations) > _MAX_ELICITATIONS:
            del self._elicitations[next(iter(self._elicitations))]
        answered = {  # damaged: a message with two results
            key
            for prefix in results
            if (key := (conversation, ids.get(prefix, ""))) in self._elicitations
        }
        for key in answered:
            del self._elicitations[key]
        if has_action or answered:
            return True
        # The id is missing in a message that is damaged or truncated.
        is_awaited = any(key[0] == conversation for key in self._elicitations)
        return is_awaited and any(prefix not in ids for prefix in results)

    # -- Pseudonyms --------------------------------------------------------------------------------

    def pseudonym_of_id(self, text: str) -> str:
        """Return the pseudonym of `text`, an id, or `text` itself if it is too short."""
        found = self._ids.get(text)
        if found is None:
            bits = sum(3.3 if each.isdigit() else 4.7 for each in text if each.isalnum())
            found = text if bits < _MIN_ID_BITS else self._pseudonym(text)
            if len(self._ids) >= _MAX_PSEUDONYMS:
                self._ids.clear()
            self._ids[text] = found
        return found

    def _pseudonym(self, text: str) -> str:
        """Return a text of the same form with other letters and digits."""
        found = self._pseudonyms.get(text)
        if found is None:
            data = text.encode("utf-8", "surrogatepass")
            stream = b""
            while len(stream) < len(text):
                block = len(stream).to_bytes(8, "big")
                stream += hmac.digest(self._key, block + data, "sha256")
            found = "".join(map(_other_character, text, stream))
            if len(self._pseudonyms) >= _MAX_PSEUDONYMS:
                self._pseudonyms.clear()
            self._pseudonyms[text] = found
        return found


def _other_character(character: str, number: int) -> str:
    if character.isdigit():
        return _DIGITS[number % 10]
    if character.isalpha():
        other = _LETTERS[number % 26]
        return other.upper() if character.isupper() else other
    return character


def _has_any(marks: tuple[str, ...], text: str) -> bool:
    return any(mark in text for mark in marks)


def _may_elicit(text: str) -> bool:
    """Return False for a message that has `elicitation` only as a capability or in words.

    Since 2026-07-28 a client declares its capabilities in each request.
    """
    return "elicitation/" in text or "elicitation\\/" in text or _URL.search(text) is not None


def _may_have_form(text: str) -> bool:
    """Return False if `SECRET_FORM` finds nothing in `text`, without a search for it."""
    lower = text.lower()
    return _has_any(_FORM_MARKS, lower) or ("gh" in lower and "_" in lower)


def _parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the names and indices of a JSON pointer.

    Raises:
        ValueError: it isn't one.
    """
    if not pointer.startswith("/"):
        raise ValueError(
            f"{pointer!r} is not a JSON pointer: write it as /params/arguments/password"
        )
    names = pointer[1:].split("/")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in names)


def _redacted(text: str) -> str:
    return redacted_text(len(text))


def _split_url(word: str) -> tuple[str, str]:
    """Split `--url=https://...` before the URL."""
    start = word.index("://")
    while start and (word[start - 1].isalnum() or word[start - 1] in "+.-"):
        start -= 1
    return word[:start], word[start:]
