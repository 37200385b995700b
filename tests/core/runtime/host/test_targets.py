"""The targets that a program gives to a host: which are right, and their secrets."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.registry import Server
from mcp_core.runtime.host import EntrySource, check_target
from mcp_core.runtime.host._targets import target_secrets

KEY = "abcdefgh12345678"


class Entry(EntrySource):
    """An entry that nothing connects to."""

    def connect(self, *_: object) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "target",
    [
        "https://h/mcp",
        "http://h/mcp",
        "ws://h/",
        "wss://h/",
        Server("x"),
        ["npx"],
        ("npx", "-y", 80),
    ],
)
def test_check_target_accepts_urls_commands_and_servers(target: object) -> None:
    check_target("x", target)


@pytest.mark.parametrize(
    ("target", "env", "inherited", "secrets"),
    [
        (Server("x"), {"API_KEY": KEY}, {"API_KEY": KEY}, set()),
        (f"https://h/?token={KEY}", {"API_KEY": "other-secret"}, None, {KEY}),
        (["x", "--api-key", KEY], {}, None, {KEY}),
        (("x", "--api-key", KEY), {}, None, {KEY}),
        (["x", 80], {"MINE": KEY}, None, {KEY}),
        (["x"], {}, {"API_KEY": KEY, "LANG": "some-language"}, {KEY}),
        (None, {"MINE": KEY}, {"API_KEY": "other-secret"}, {KEY, "other-secret"}),
        (["x"], {}, None, set()),
    ],
)
def test_secrets_of_a_target_are_those_of_its_words_and_variables(
    target: Any, env: dict[str, str], inherited: dict[str, str] | None, secrets: set[str]
) -> None:
    """Variables count for a program only: a URL and a `Server` of this process get none."""
    assert target_secrets(target, env, inherited) == secrets


@pytest.mark.parametrize(
    ("path", "home", "expanded"),
    [
        ("~", "/h", "/h"),
        ("~/x", "/h", "/h/x"),
        ("~\\x", "C:\\u", "C:\\u\\x"),
        ("~user/x", "/h", "~user/x"),
        ("x/~", "/h", "x/~"),
        ("~/x", None, "~/x"),
        ("~/x", "", "~/x"),
    ],
)
def test_home_directory_of_an_entry_takes_the_place_of_a_tilde(
    path: str, home: str | None, expanded: str
) -> None:
    """In the command and the directory. A directory that isn't given stays None."""
    environ = {} if home is None else {"HOME": home}
    assert Entry("x", {"command": path}).expand(environ).command == expanded
    found = Entry("x", {"command": "x", "cwd": path}).expand(environ)
    assert (found.command, found.cwd) == ("x", expanded)
    assert Entry("x", {"command": "x"}).expand(environ).cwd is None


@pytest.mark.parametrize(
    ("entry", "secrets"),
    [
        ({"command": "x", "args": ["--api-key", KEY]}, {KEY}),
        ({"command": f"x --api-key={KEY}", "args": []}, {KEY}),
        (
            {"command": "x", "args": ["--api-key", "${K}"], "env": {"MINE": "${V}"}},
            {KEY, "val-ues"},
        ),
        ({"url": f"https://h/?token={KEY}"}, {KEY}),
        ({"command": "x", "args": ["a"]}, set()),
    ],
)
def test_secrets_of_an_entry_are_known_once_it_is_expanded(
    entry: dict[str, Any], secrets: set[str]
) -> None:
    source = Entry("x", entry)
    assert source.secrets == set()
    source.expand({"K": KEY, "V": "val-ues"})
    assert source.secrets >= secrets
    assert bool(source.secrets) is bool(secrets)


def test_entry_is_the_same_only_as_one_of_its_own_kind() -> None:
    class Other(Entry):
        pass

    entry = {"command": "x"}
    assert Entry("x", entry).same_as(Entry("x", entry))
    assert not Other("x", entry).same_as(Entry("x", entry))
    assert not Entry("x", entry).same_as(None)
