"""A launch's secrets: by the names of its options, variables and headers, and by their form."""

from __future__ import annotations

from base64 import b64encode

import pytest

from mcp_core._launch_secrets import (
    find_url_secrets,
    hide_pairs,
    is_known_variable,
    launch_secrets,
    redact_words,
)

RANDOM = "9f8e7d6c5b4a3928"  # what a machine has drawn


def shown(text: str) -> str:
    return hide_pairs(text, lambda value: f"<{value}>")


# -- The words of a command ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "secrets"),
    [
        ([], set()),
        (["server", "--port", "8080"], set()),
        (["server", "--api-key=abcdef"], {"abcdef"}),
        (["server", "--api-key", "abcdef"], {"abcdef"}),
        (["server", "-key", "abcdef", "other-word"], {"abcdef"}),
        (["env", "API_KEY=abcdef", "server"], {"abcdef"}),
        (["env", "PASSWORD=correct horse, battery", "server"], {"correct horse, battery"}),
        (["server", "--api-key=a=b=c=d"], {"a=b=c=d"}),
        # The next option isn't a value, and a value is one word.
        (["server", "--api-key", "--verbose", "abcdef"], set()),
        (["server", "--api-key", "-abcdef", "ghijkl"], {"-abcdef"}),
        (["server", "--name=x", "--monkey", "abcdef"], {"abcdef"}),
        (["server", "token", "abcdef"], set()),
        # Short values, words and paths would hide ordinary text.
        (["server", "--api-key", "abcde"], set()),
        (["server", "--token", "production"], set()),
        (["server", "--key", "/home/ann/key.pem"], set()),
        # A header.
        (["--header", "Authorization: Bearer abcdef"], {"Bearer abcdef"}),
        (["--header", "X-Api-Key:abcdef"], {"abcdef"}),
        (["--header", "X-Name: abcdef"], set()),
        (["--header=X-Api-Key: abcdef"], {"abcdef"}),
        (["X-Api-Key: http://ann:hunter22@a.example"],
            {"http://ann:hunter22@a.example", "hunter22"}),
        (["the token: abcdef"], {"abcdef"}),
        # A value in base64 may end in `=`.
        (["--header", "Authorization: Basic YW5uOmh1bnRlcjIyMg=="],
            {"Basic YW5uOmh1bnRlcjIyMg=="}),
        (["X-Api-Key:c2VjcmV0dmFsdWU="], {"c2VjcmV0dmFsdWU="}),
        (["--config", '{"apiKey":"c2VjcmV0dmFsdWU="}'], {"c2VjcmV0dmFsdWU="}),
        # Inside a word.
        (["--config", '{"apiKey":"abcdef","name":"ghijkl"}'], {"abcdef"}),
        (["sh", "-c", "server --api-key abcdef --name ghijkl"], {"abcdef"}),
        (["sh", "-c", "server --api-key abcdef --name=ghijkl"], {"abcdef"}),
        (["sh", "-c", "export API_KEY=abcdef NAME=ghijkl; server"], {"abcdef"}),
        (["sh", "-c", "server --name ghijkl"], set()),
        # An option that has its value takes no other word.
        (["--mode=token", "main.py"], set()),
        (['--config={"apiKey":"abcdef"}', "main.py"], {"abcdef"}),
        # A URL has its own rules.
        ([f"https://ann:hunter22@a.example/{RANDOM}?token=abcdef&a=b"],
            {"hunter22", RANDOM, "abcdef"}),
        (["--url", f"see https://a.example/{RANDOM}, or http://b.example/?key=ghijkl"],
            {RANDOM, "ghijkl"}),
        (["--url=https://a.example/?key=ghijkl"], {"ghijkl"}),
    ],
)  # fmt: skip
def test_words_show_their_secrets(words: list[str], secrets: set[str]) -> None:
    assert launch_secrets(words) == secrets


@pytest.mark.parametrize(
    ("words", "redacted"),
    [
        (["server", "--api-key=abcdef", "word"], ["server", "--api-key=#", "word+"]),
        (["--api-key", "abcdef", "x"], ["--api-key+", "#", "x+"]),
        (["--api-key", "--token", "abcdef"], ["--api-key+", "--token+", "#"]),
        (["X-Api-Key:  abcdef "], ["X-Api-Key: #"]),
        (["-x", "https://a/?api_key=abcdef"], ["-x+", "https://a/?api_key=#"]),
    ],
)
def test_redacted_words_keep_their_names(words: list[str], redacted: list[str]) -> None:
    """A word that isn't hidden as a whole is handed on: here it gets a mark."""
    found = redact_words(words, lambda value: "#", lambda word: f"{word}+")
    assert [each.replace("server+", "server") for each in found] == redacted


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("https://a.example/docs", set()),
        ("https://ann@a.example/", {"ann"}),
        ("https://ann:pw@a.example/", {"pw"}),
        ("https://ann:p@w:x@a.example/", {"p@w:x"}),
        ("https://a.example/@ann", set()),
        (f"https://a.example/x/{RANDOM}/y", {RANDOM}),
        (f"https://{RANDOM}.example/", set()),
        ("https://a.example/?token=t&name=n", {"t"}),
        ("https://a.example/?a=b;token=t", {"t"}),
        (f"https://a.example/?name={RANDOM}", {RANDOM}),
        (f"https://a.example/?{RANDOM}", {RANDOM}),
        ("https://a.example/?token", set()),
        ("https://a.example/#token=t", {"t"}),
        ("https://a.example/?a=b#?token=t", {"t"}),
        ("https://a.example/?token=a%20b", {"a%20b", "a b"}),
        ("a.example/?token=t", set()),
    ],
)
def test_url_shows_its_secrets(url: str, secrets: set[str]) -> None:
    assert find_url_secrets(url) == secrets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("nothing here", "nothing here"),
        ("token=abc", "token=<abc>"),
        ("token: abc", "token: <abc>"),
        ("token => 'abc'", "token => '<abc>'"),
        ('"token","abc"', '"token","<abc>"'),
        ("token,abc", "token,abc"),
        ("(b'cookie', b'a=b; c=d')", "(b'cookie', b'<a=b; c=d>')"),
        ('{\\"apiKey\\":\\"abc\\"}', '{\\"apiKey\\":\\"<abc>\\"}'),
        ('{"password":"a, b","c":"d"}', '{"password":"<a, b>","c":"d"}'),
        ('{"password":"a \\"b\\" c","d":1}', '{"password":"<a \\"b\\" c>","d":1}'),
        ('{\\"password\\":\\"a \\\\\\"b\\"}', '{\\"password\\":\\"<a \\\\\\"b>\\"}'),
        ("passwd='it is' x", "passwd='<it is>' x"),
        ("passwd='it is", "passwd='<it is>"),
        ("passwd='it is\nx'", "passwd='<it is>\nx'"),
        ('passwd="""it\'s""" x', 'passwd="""<it\'s>""" x'),
        ("passwd='' user='a b'", "passwd='' user='a b'"),
        ("('cookie', 'a=\"b c\"; d') e", "('cookie', '<a=\"b c\"; d>') e"),
        ("passwd='a ‹1› b' c", "passwd='<a ‹1› b>' c"),
        ("sh -c \"s --api-key 'a -b' c\"", "sh -c \"s --api-key '<a -b>' c\""),
        ("--api-key '-a b' c", "--api-key '<-a b>' c"),
        ("Authorization: Token abc def\nnext", "Authorization: <Token abc def>\nnext"),
        ("x-authorization: Token abc", "x-authorization: <Token abc>"),
        ("token=abc def", "token=<abc> def"),
        ("a=1&token=abc&b=2", "a=1&token=<abc>&b=2"),
        ("token=", "token="),
        ("token=password=abc", "token=<password=abc>"),
        ("key=a key=b name=c", "key=<a> key=<b> name=c"),
        ("x --api-key abc y", "x --api-key <abc> y"),
        ("x --api-key  'abc' y", "x --api-key  '<abc>' y"),
        ("x --name abc y", "x --name abc y"),
        ("x--api-key abc", "x--api-key abc"),
        ("x --api-key -y", "x --api-key -y"),
    ],
)
def test_pairs_in_a_text_lose_their_values(text: str, expected: str) -> None:
    assert shown(text) == expected


# -- Variables and headers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "is_known"),
    [
        ("API_KEY", "abcdef", True),
        ("API_KEY", "a", True),
        ("API_KEY", "production", True),
        ("ACCOUNT", "abcdef", True),
        ("ACCOUNT", "abcde", False),
        ("ACCOUNT", "production", False),
        ("ACCOUNT", "/home/ann/work", False),
        ("ACCOUNT", "1.22.333", False),
        ("PATH", "abcdefgh", False),
        ("path", "abcdefgh", False),
        ("MY_PATH", "abcdefgh", True),
        ("LC_ALL", "abcdefgh", False),
        ("PYTHONPATH", "abcdefgh", False),
    ],
)
def test_variable_is_known_unless_it_says_nothing(name: str, value: str, is_known: bool) -> None:
    assert is_known_variable(name, value) is is_known
    known = launch_secrets(env={name: value})
    assert known == ({value} if is_known and len(value) >= 6 else set())


@pytest.mark.parametrize(
    ("name", "value", "is_known"),
    [
        ("API_KEY", "abcdef", True),
        ("API_KEY", "abcde", False),
        ("API_KEY", "production", False),
        ("ACCOUNT", "abcdef", False),
    ],
)
def test_inherited_variable_is_known_by_its_name(name: str, value: str, is_known: bool) -> None:
    assert launch_secrets(inherited={name: value}) == ({value} if is_known else set())


def basic(text: bytes) -> str:
    return f"Basic {b64encode(text).decode()}"


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("Authorization", "Bearer abcdef", ["Bearer abcdef", "abcdef"]),
        ("Authorization", "abcdef", ["abcdef"]),
        ("Authorization", basic(b"ann:hunter22"), ["{value}", "{rest}", "hunter22"]),
        ("Authorization", basic(b"hunter22:"), ["{value}", "{rest}", "hunter22"]),
        ("Authorization", basic(b"hunter22"), ["{value}", "{rest}", "hunter22"]),
        ("Authorization", basic(b"ann:hunter:22"), ["{value}", "{rest}", "hunter:22"]),
        ("Authorization", basic(b"\xff\xfe\xfd:\xff\xff\xff\xff\xff\xff"), ["{value}", "{rest}"]),
        ("Authorization", "Basic no*base64", ["{value}", "{rest}"]),
        ("Proxy-Authorization", basic(b"ann:hunter22").replace("B", "b", 1),
            ["{value}", "{rest}", "hunter22"]),
        ("Cookie", "a=abcdef; b=ghijkl", ["{value}", "b=ghijkl", "abcdef", "ghijkl"]),
        ("X-Cookie", "a=abcdef;b=g", ["{value}", "abcdef"]),
        ("X-Api-Key", "a=abcdef", ["a=abcdef"]),
        ("X-Account", "abcdef", ["abcdef"]),
        ("X-Account", "abc defghi", ["abc defghi"]),
        ("X-Account", "abcde", []),
        ("X-Account", "production", []),
        ("User-Agent", "abcdefgh", []),
        ("Accept-Language", "abcdefgh", []),
        ("Mcp-Name", "abcdefgh", []),
        ("X-Accept", "abcdefgh", ["abcdefgh"]),
    ],
)  # fmt: skip
def test_header_shows_its_credential(name: str, value: str, parts: list[str]) -> None:
    """An error may have the credential without its scheme, or the password alone."""
    rest = value.partition(" ")[2]
    assert launch_secrets(headers={name: value}) == {
        each.format(value=value, rest=rest) for each in parts
    }


def test_secrets_of_all_parts_are_together() -> None:
    assert launch_secrets(
        ["server", "--token", "abcdef"],
        env={"ACCOUNT": "ghijkl"},
        headers={"X-Api-Key": "mnopqr"},
        inherited={"DB_PASSWORD": "stuvwx"},
    ) == {"abcdef", "ghijkl", "mnopqr", "stuvwx"}
