"""How a secret is recognized in a log or a trace: by the name of its member, or by its form.

This is a net, not a wall: a secret in plain words isn't found.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "MIN_SECRET",
    "SECRET_FORM",
    "is_plain_value",
    "is_secret_field",
    "is_secret_name",
    "looks_random",
]

# By a word anywhere in a name, in any case and with any separators: accessToken, X-Api-Key.
_SECRET_WORD: Final = re.compile(
    r"passw|passphrase|passcode|pwd|secret|token|credential|api.?key|private.?key|access.?key"
    r"|authorization|cookie|bearer|(?:^|[\W_])(?:otp|pin)(?:$|[\W_])",
    re.IGNORECASE,
)
# By the last word, perhaps with a number: x-functions-key, DD_AUTH, dbPass, KEY_2. A capital begins
# a word, so that `MONKEY`, `compass` and `PATH` are other words.
_SECRET_ENDING: Final = re.compile(
    r"(?:^|(?<=[\W_\d])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"
    r"(?i:key|auth|pass|pat|jwt|dsn|sig)[\W_]?\d{0,4}$"
)
# Endings with a `key` that opens nothing. What such a header has may be sent unencrypted.
_PLAIN_ENDING: Final = re.compile(
    r"""
    (?:^|[\W_]|(?<=[a-z])(?-i:(?=[A-Z])))(?:
        public             # of a pair of keys, it is the one for others
        | idempotency      # marks a repeated request, and is worth nothing without a credential
        | websocket        # of `Sec-WebSocket-Key`: a nonce, which RFC 6455 sends in clear
        | cache|surrogate  # labels of what a cache has
        | foreign|partition|sort  # columns of a table
    )[\W_]?key$
    """,
    re.VERBOSE | re.IGNORECASE,
)
# It is looked for in titles and descriptions, too, in which the last word says nothing.
_SECRET_FIELD: Final = re.compile(
    r"passw|passphrase|passcode|secret|credential|api.?key|private.?key|access.?key|token"
    r"|credit.?card|card.?number|cvv|\bcvc2?\b|\bpin\b|pin.?code",
    re.IGNORECASE,
)
# By the form of a text. Each alternative begins with fixed characters, and repeats one class only,
# so that searching takes linear time.
SECRET_FORM: Final = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----[^-]*(?:-----END[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----)?
    | (?i:\bbearer[ ]+)[\w.~+/=-]{8,}
    | (?i:\bbasic[ ]+)[A-Za-z0-9+/]{12,}={0,2}
    | \beyJ[\w-]{8,}\.[\w.-]*                     # JSON Web Tokens
    | \b(?:sk|pk|rk)[-_][\w-]{16,}                # OpenAI, Anthropic, Stripe
    | \b(?:gh[a-z]_|github_pat_|glpat-|npm_|pypi-|hf_)[\w-]{16,}
    | \bxox[a-z]-[\w-]{10,}                       # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b               # AWS
    | \bAIza[\w-]{30,}                            # Google
    | (?<=://)[^\s/@:]{1,256}:[^\s/@]{1,256}(?=@) # user and password of a URL
    """,
    re.VERBOSE,
)
MIN_SECRET: Final = 6  # characters; a shorter one would match inside ordinary words

# Texts of settings, and words of the protocol. If a variable has one of them as its value, and its
# name isn't a secret's, hiding the value would make messages unreadable.
_PLAIN_VALUES: Final = frozenset(
    """
    array assistant bearer boolean config critical default development disabled emergency enabled
    english integer localhost memory network notice number object production prompts release
    resource resources sampling server staging standard stderr stdout string testing verbose warning
    """.split()
)
# What is not to be hidden all over a trace: a path of the file system, of words; a version or date.
_PLAIN_FORM: Final = re.compile(
    r"(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][^/\\:@]*)+|v?\d+(?:[.-]\d+){1,3}", re.ASCII
)
_MIN_RANDOM: Final = 8  # characters of a random part: some 32 bits, below which it can be guessed
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PART: Final = re.compile(r"[A-Za-z0-9]+")
_BASE64: Final = re.compile(r"[\w-]+", re.ASCII)
_KINDS: Final = frozenset("Aa0")
_RUN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")  # a word, or a number
_HEX: Final = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{10,}", re.IGNORECASE)
_MAX_RUN: Final = 2.5  # characters of a run, on average, of a random text; names have more
_LONG: Final = 12  # a number of so many characters isn't a date, and a lack of vowels isn't chance
_INNER_DIGIT: Final = re.compile(r"[A-Za-z][0-9]++[A-Za-z]")
_CONSONANTS: Final = re.compile(r"[b-df-hj-np-tv-xz]{4}", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """True if the value of a member, a variable, an option or a header with this name is a secret.

    Args:
        name: the name, in any case and with any separators.
    """
    if _SECRET_WORD.search(name) is not None:
        return True
    return _SECRET_ENDING.search(name) is not None and _PLAIN_ENDING.search(name) is None


def is_secret_field(text: str) -> bool:
    """True if a field of this name, title or description must not be in a form of a server.

    Source: client/elicitation, Security Considerations.

    Args:
        text: the name, the title or the description.
    """
    return _SECRET_FIELD.search(text) is not None


def is_plain_value(value: str) -> bool:
    """True if `value` is a common word, a path or a version, and says nothing that is secret.

    It is for values whose names don't say what they are.
    """
    if value.lower() in _PLAIN_VALUES:
        return True
    return _PLAIN_FORM.fullmatch(value) is not None and not looks_random(value)


def looks_random(text: str) -> bool:
    """True if a part of `text` looks as if a machine had drawn it, such as a UUID or a token.

    Words, versions, dates and short numbers don't.
    """
    if _UUID.search(text) is not None:
        return True
    parts = _PART.findall(text)
    if any(each.isdigit() and len(each) >= _LONG for each in parts):
        return True
    # In base64 for URLs the separators are random, too.
    joined = (each.replace("-", "").replace("_", "") for each in _BASE64.findall(text))
    return any(map(_is_random, parts)) or any(
        _is_random(each) for each in joined if set(map(_kind, each)) >= _KINDS
    )


def _kind(character: str) -> str:
    return "0" if character.isdigit() else "A" if character.isupper() else "a"


def _is_random(part: str) -> bool:
    size = len(part)
    if size < _MIN_RANDOM or part.isdigit():
        return False
    if _HEX.fullmatch(part):
        return True
    runs = _RUN.findall(part)
    if len(runs) > 2 and size < _MAX_RUN * len(runs):
        return True
    if size < _LONG or not _INNER_DIGIT.search(part):
        return False
    return sum(map(str.isdigit, runs)) > 1 or _CONSONANTS.search(part) is not None
