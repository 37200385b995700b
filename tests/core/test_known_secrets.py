"""The search for known secrets, in every spelling that a peer or a program gives them."""

from __future__ import annotations

import json
import random
import re
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core._known_secrets import KnownSecrets
from tests.levels import fewer_examples

SECRETS = [
    "sk-9f8e7d6c5b4a3928",
    "hunter2",
    "correct horse battery staple",
    "pässwörd-1/2+3",
    'quote"back\\slash\nand %41',
    "\U0001f511 emoji key",
    "tab\tand/slash",
]


def spelled_in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "JSON": spelled_in_json,
    "JSON with UTF-8": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON with escaped slashes": lambda secret: spelled_in_json(secret).replace("/", "\\/"),
    "JSON in JSON": lambda secret: spelled_in_json(spelled_in_json(secret)),
    "JSON in JSON in JSON": lambda secret: spelled_in_json(
        spelled_in_json(spelled_in_json(secret))
    ),
    "JSON with every escape": lambda secret: "".join(
        f"\\u{code:04X}" for code in memoryview(secret.encode("utf-16-le")).cast("H")
    ),
    "percent": lambda secret: quote(secret, safe=""),
    "percent in lower case": lambda secret: re.sub(
        "%..", lambda match: match[0].lower(), quote(secret, safe="")
    ),
    "percent of every byte": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "percent with slashes": quote,
    "form": quote_plus,
    "percent of percent": lambda secret: quote(quote(secret, safe=""), safe=""),
    "percent in JSON": lambda secret: spelled_in_json(quote(secret)),
    "repr": lambda secret: repr(secret)[1:-1],
    "repr of bytes": lambda secret: repr(secret.encode())[2:-1],
    "bytes of a header": lambda secret: secret.encode().decode("latin-1"),
}


def in_base64(before: str, after: str) -> dict[str, Callable[[str], str]]:
    def spelled(secret: str) -> str:
        return b64encode(f"{before}{secret}{after}".encode()).decode()

    def spelled_for_urls(secret: str) -> str:
        return urlsafe_b64encode(f"{before}{secret}{after}".encode()).decode().rstrip("=")

    name = f"base64 {before}.{after}"
    return {
        name: spelled,
        f"{name} for URLs": spelled_for_urls,
        f"{name} in JSON": lambda secret: spelled(secret).replace("/", "\\/"),
        f"{name} in a URL": lambda secret: quote(spelled(secret), safe=""),
    }


for before in ("", "u", "u:"):
    for after in ("", "z", "zz"):
        SPELLINGS |= in_base64(before, after)


def hidden(text: str, *secrets: str) -> str:
    return KnownSecrets(secrets).hide(text, lambda _: "<>")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_secret_is_found_in_every_spelling(spelling: str) -> None:
    for secret in SECRETS:
        spelled = SPELLINGS[spelling](secret)
        text = f'{{"a": "see {spelled} there"}}'
        assert KnownSecrets([secret]).found_in(text), secret
        shown = hidden(text, "another 1", secret)
        assert shown == '{"a": "see <> there"}', secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-9f8e7...", "key <>..."),
        ("key sk-9f8e7d6c5b4 is cut", "key <> is cut"),
        ("key ***5b4a3928", "key ***<>"),
        ("of 6c5b4a3928", "of <>"),
        ("sk-9f8e then 4a3928", "sk-9f8e then 4a3928"),  # 7 and 6 characters
        ("sk-9f8e7d6 7d6c5b4a3928", "<> <>"),
        ("sk-9f8e7 \\u0073k-9f8e7", "<> <>"),
    ],
)
def test_beginning_or_end_of_eight_characters_is_found(text: str, expected: str) -> None:
    assert hidden(text, "sk-9f8e7d6c5b4a3928") == expected


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        # A part that may be a word takes 16, and the host of a URL is none of it.
        ("postgres://ann:hunter22@db/x", "use postgres", "use postgres"),
        ("postgres://ann:hunter22@db/x", "postgres://ann:hunt...", "<>..."),
        ("resources-of-the-team", "resources/list", "resources/list"),
        ("resources-of-the-team", "resources-of-the", "<>"),
        ("https://api.example.com/s/9f8e7d6c", "https://api.example.com/docs", None),
        ("https://api.example.com/s/9f8e7d6c", "https://api.example.com/s/9", None),
        ("https://api.example.com/s/9f8e7d6c", "https://api.example.com/s/9f8e7d", "<>"),
        ("Production1", "Production", "Production"),
    ],
)
def test_beginning_that_may_be_a_word_is_kept(secret: str, text: str, expected: str | None) -> None:
    assert hidden(text, secret) == (text if expected is None else expected)


def test_secret_below_six_characters_does_not_count() -> None:
    known = KnownSecrets(["tiny1", ""])
    assert not known
    assert known.hide("tiny1 dGlueTE=", lambda _: "<>") == "tiny1 dGlueTE="


def test_secret_of_six_characters_counts() -> None:
    assert hidden("tiny12 dGlueTEy", "tiny12") == "<> <>"


def test_beginning_of_twelve_characters_is_found_in_base64() -> None:
    """They have nine bytes."""
    spelled = b64encode(b"sk-9f8e7d6c5b4a3928").decode()
    assert hidden(f"{spelled[:12]}...", "sk-9f8e7d6c5b4a3928") == "<>..."
    assert hidden(f"{spelled[:11]}...", "sk-9f8e7d6c5b4a3928") == f"{spelled[:11]}..."


def test_escapes_are_read_four_times() -> None:
    text = "sk-9f8e7 8d9e0f"
    for _ in range(4):
        text = quote(text, safe="")
        assert hidden(f"of {text}.", "sk-9f8e7 8d9e0f") == "of <>."
    known = KnownSecrets(["sk-9f8e7 8d9e0f"])
    text = "".join(f"%{byte:02x}" for byte in b"sk-9f8e7 8d9e0f")
    for _ in range(3):
        text = quote(text)
        assert known.found_in(text)
    assert not known.found_in(quote(text))


def test_secret_behind_a_scheme_is_found_without_it() -> None:
    assert hidden("Bearer 9f8e7d6c / 9f8e7d6c", "Bearer 9f8e7d6c", "9f8e7d6c") == "Bearer <> / <>"


def test_overlapping_secrets_are_hidden_once() -> None:
    assert hidden("-abcdef123456-", "abcdef12", "ef123456", "abcdef") == "-<>-"


def test_repr_has_no_secret() -> None:
    assert "hunter2" not in repr(KnownSecrets(["hunter2"]))


@fewer_examples(2)
@given(st.text(), st.text(min_size=6, max_size=40))
def test_hidden_secret_is_no_longer_found(text: str, secret: str) -> None:
    known = KnownSecrets([secret])
    shown = known.hide(f"{text}{secret}{text}", lambda _: "‹›")
    assert not known.found_in(shown)


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\\"), min_size=6, max_size=40).map(
        "{}1aA".format
    )
)
def test_any_secret_is_found_in_every_spelling(secret: str) -> None:
    known = KnownSecrets([secret])
    for spell in SPELLINGS.values():
        assert known.found_in(f'"{spell(secret)}"')


@pytest.mark.perf
def test_text_without_secret_is_searched_in_linear_time() -> None:
    """1 MiB of what is nearly an escape, or nearly a secret."""
    numbers = random.Random(1)
    known = KnownSecrets(numbers.randbytes(16).hex() for _ in range(5))
    for unit in ("\\", "%", "%2", "\\u00", "\\\\/", "a", "%41"):
        text = unit * (1024 * 1024 // len(unit))
        begun = time.process_time()
        assert not known.found_in(text)
        assert time.process_time() - begun < 5
