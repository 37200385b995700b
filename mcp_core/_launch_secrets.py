"""A launch's secrets: what its command, address, variables and headers show to be one.

They are known before anything crosses, so that all that records the conversation can hide them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from ._secret_patterns import MIN_SECRET, is_plain_value, is_secret_name, looks_random

__all__ = [
    "PAIR_MARKS",
    "QUERY_PART",
    "URL_IN_TEXT",
    "find_url_secrets",
    "hide_pairs",
    "is_known_variable",
    "launch_secrets",
    "redact_words",
]

# A name in a longer text, as in `--config {"a":1,"apiKey":"x"}` or in stderr, where programs also
# print pairs as `(b'cookie', b'a=b')`, `"auth" => "x"` and as JSON in JSON.
_NAME: Final = re.compile(
    r"""(?<![\w.-])([\w.-]{1,100}+)[\\"']{0,8}\s{0,4}(?:[:=]>?|(?<=["']),)\s{0,4}(?:b?[\\"']{1,8})?"""
)
_VALUE: Final = re.compile(r"""[^\s"',;}&‹]+""")
# What has several words, such as `Token abc` and `a=b; c=d`: up to the end of its line or quote.
_LONG_NAME: Final = re.compile(r"(?:authorization|cookie)$", re.IGNORECASE)
_LONG_VALUE: Final = re.compile(r"""[^"'\r\n‹]+""")
# The quote before a value, which ends it too. In JSON in JSON it has backslashes before it, and in
# Python there may be three. Two are an empty text.
_QUOTE: Final = re.compile(r"""(?<![\\"'])(?:\\*["']|"{3}|'{3})\Z""")
_QUOTED_VALUE: Final = re.compile(r"[^\r\n‹][^\r\n]*")
# The same behind an option inside a word, as in `sh -c "server --api-key x"`.
_OPTION: Final = re.compile(r"""(?<!\S)(-[\w.-]{1,100}+)[ ]+["']?""")
_OPTION_VALUE: Final = re.compile(r"""[^\s"',;}&‹-][^\s"',;}&‹]*+""")
# A word, up to its `=` or `:`, that is one name. JSON, a shell's command and a header with a value
# in base64, which may end in `=`, have more before that.
_ONE_NAME: Final = re.compile(r"""[^\s"'{}:,;]+""")
URL_IN_TEXT: Final = re.compile(r"""[a-z][a-z0-9+.-]{1,20}+://[^\s"'<>‹,;)\]}]+""", re.IGNORECASE)
QUERY_PART: Final = re.compile(r"[^&;#?]+")
# One of these is in every text in which `hide_pairs` finds something, in lower case.
PAIR_MARKS: Final = (
    *("key", "auth", "pass", "pat", "jwt", "dsn", "sig", "token", "secret", "pwd", "credential"),
    *("cookie", "bearer", "otp", "pin"),
)
# Variables that every program gets, or that Python reads: places, names and switches.
_PLAIN_VARIABLE: Final = re.compile(
    r"HOME|LOGNAME|PATH|PWD|OLDPWD|SHELL|TERM|USER|LANG(?:UAGE)?|LC_\w+|TMPDIR|TZ|EDITOR|DISPLAY"
    r"|HOSTNAME|NODE_ENV|PYTHON\w+|XDG_\w+|APPDATA|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATHEXT"
    r"|PROCESSOR_ARCHITECTURE|SYSTEMDRIVE|SYSTEMROOT|TEMP|TMP|USERNAME|USERPROFILE|COMSPEC"
    r"|PROGRAMDATA|PROGRAMFILES|WINDIR",
    re.IGNORECASE,
)
_PLAIN_HEADER: Final = re.compile(
    r"(?:accept|content|mcp|sec)-.*|accept|cache-control|connection|date|host|origin|referer"
    r"|user-agent|via|from|te|pragma",
    re.IGNORECASE,
)


def launch_secrets(
    words: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    inherited: Mapping[str, str] | None = None,
) -> frozenset[str]:
    """Return a launch's secrets, for all that records or shows what the server says.

    Args:
        words: the command's words, or the URL as the only word.
        env: the variables that the server gets. All count but common words, paths and the like.
        headers: each request's headers. The same.
        inherited: the variables that it inherits, of which those with names of secrets count.
    """
    found = {value for value in _command_secrets(words) if not is_plain_value(value)}
    found.update(value for name, value in (env or {}).items() if is_known_variable(name, value))
    found.update(
        value
        for name, value in (inherited or {}).items()
        if is_secret_name(name) and not is_plain_value(value)
    )
    for name, value in (headers or {}).items():
        if is_secret_name(name):
            found.update(_credential_parts(name, value))
        elif not (_PLAIN_HEADER.fullmatch(name) or is_plain_value(value)):
            found.add(value)
    return frozenset(value for value in found if len(value) >= MIN_SECRET)


def is_known_variable(name: str, value: str) -> bool:
    """True if the value of a variable of a launch, or of an input, must not be shown.

    A variable is where a user puts a secret, so that only those don't count which say nothing.
    """
    if is_secret_name(name):
        return True
    return not (len(value) < MIN_SECRET or _PLAIN_VARIABLE.fullmatch(name) or is_plain_value(value))


def _credential_parts(name: str, value: str) -> Iterator[str]:
    """Yield the value of a header with a credential, and what an error may have of it."""
    yield value
    scheme, _, rest = value.partition(" ")
    yield rest
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(rest).decode().partition(":")
        except ValueError:
            return
        yield password or user
    elif "cookie" in name.lower():
        for pair in value.split(";"):
            yield pair.partition("=")[2].strip()


def _command_secrets(words: Sequence[str]) -> frozenset[str]:
    """Return the secrets in a command, or in a URL as its only word.

    They are what the names of options, variables and headers show to be one, user info, and parts
    of URLs that look random.
    """
    found: set[str] = set()

    def add(value: str) -> str:
        found.add(value)
        return value

    def add_parts(word: str) -> str:
        for match in URL_IN_TEXT.finditer(word):
            found.update(find_url_secrets(match[0]))
        return word

    redact_words(words, add, add_parts)
    return frozenset(found)


def find_url_secrets(url: str) -> frozenset[str]:
    """Return the secrets in a URL: user info, and parts of the path and query that look random."""
    rest = url.partition("://")[2]
    before, _, fragment = rest.partition("#")
    before, _, query = before.partition("?")
    authority, _, path = before.partition("/")
    found = set()
    if "@" in authority:
        user, _, password = authority.rpartition("@")[0].partition(":")
        found.add(password or user)
    found.update(filter(looks_random, path.split("/")))
    for part in QUERY_PART.findall(f"{query}&{fragment}"):
        name, equals, value = part.partition("=")
        if not equals:
            name, value = "", name
        if is_secret_name(name) or looks_random(value):
            found.add(value)
    return frozenset(each for value in found for each in (value, unquote(value)))


def redact_words(
    words: Sequence[str], hide: Callable[[str], str], redact_word: Callable[[str], str]
) -> list[str]:
    """Return the words of a command with secrets replaced.

    Args:
        words: the words.
        hide: returns what stands for a value that is a secret by its name.
        redact_word: redacts a word that has no such value as a whole.
    """
    shown: list[str] = []
    hides_next = False
    for word in words:
        name, equals, value = word.partition("=")
        if hides_next and not word.startswith("--"):
            shown.append(hide(word))
            hides_next = False
            continue
        hides_next = False
        header_name, colon, header_value = word.partition(":")
        if equals and _ONE_NAME.fullmatch(name) and _is_secret_option(name):
            shown.append(f"{name}={hide(value)}")
        elif (
            colon
            and "://" not in word
            and _ONE_NAME.fullmatch(header_name)
            and is_secret_name(header_name)
        ):
            shown.append(f"{header_name}: {hide(header_value.strip())}")
        else:
            is_option = word.startswith("-") and not equals and bool(_ONE_NAME.fullmatch(word))
            hides_next = is_option and _is_secret_option(word)
            shown.append(hide_pairs(redact_word(word), hide))
    return shown


def hide_pairs(text: str, hide: Callable[[str], str]) -> str:
    """Hide values behind secret names inside `text`, such as a line of stderr.

    Args:
        text: any text, as one word of a command.
        hide: returns what stands for a value.
    """
    return _hide_behind(_OPTION, _OPTION_VALUE, _hide_behind(_NAME, _VALUE, text, hide), hide)


def _hide_behind(
    names: re.Pattern[str], values: re.Pattern[str], text: str, hide: Callable[[str], str]
) -> str:
    """Hide values behind secret names: those in quotes with all the words between them.

    Args:
        names: matches a name, which is its first group, up to its value.
        values: matches a value without quotes.
        text: as of `hide_pairs`.
        hide: as of `hide_pairs`.
    """
    pieces: list[str] = []
    done = 0
    for match in names.finditer(text):
        name, start, end = match[1], match.end(), len(text)
        if match.start() < done or not _is_secret_option(name):
            continue
        pattern = _LONG_VALUE if _LONG_NAME.search(name) else values
        if quote := _QUOTE.search(match[0]):
            pattern = _QUOTED_VALUE
            # Without a second quote the line was cut, perhaps in the middle of the secret.
            ends = re.compile(rf"(?<!\\){re.escape(quote[0])}|[\r\n]")
            if found := ends.search(text, start):
                end = found.start()
        if value := pattern.match(text, start, end):
            pieces += (text[done:start], hide(value[0]))
            done = value.end()
    pieces.append(text[done:])
    return "".join(pieces)


def _is_secret_option(name: str) -> bool:
    """True if an option or variable of this name has a secret as its value."""
    return is_secret_name(name) or "key" in name.lower()
