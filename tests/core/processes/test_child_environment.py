"""The environment of a child process."""

from __future__ import annotations

import pytest

from mcp_core.processes import _child_environment
from mcp_core.processes._child_environment import (
    MARK_VARIABLE,
    child_environment,
    withheld_text,
)

ENVIRON = {"PATH": "/bin", "HOME": "/h", "TZ": "UTC", "TERM": "() { :; }", "API_TOKEN": "secret"}
FEW = {"PATH": "/bin", "HOME": "/h", "TZ": "UTC"}
MARK = {MARK_VARIABLE: "m"}


@pytest.mark.parametrize(
    ("env", "inherit_env", "expected"),
    [
        (None, False, FEW),
        ({}, False, FEW),
        ({"A": "1", "PATH": "/a"}, False, {**FEW, "A": "1", "PATH": "/a"}),
        ({"TERM": "() { :; }"}, False, {**FEW, "TERM": "() { :; }"}),
        (None, True, ENVIRON),
        ({"A": "1", "TZ": "CET"}, True, {**ENVIRON, "A": "1", "TZ": "CET"}),
        ({MARK_VARIABLE: "forged"}, False, FEW),
    ],
)
def test_child_environment_is_short_unless_requested(
    env: dict[str, str] | None, inherit_env: bool, expected: dict[str, str]
) -> None:
    given = child_environment(ENVIRON, env, inherit_env=inherit_env, mark="m")
    assert given == expected | MARK


@pytest.mark.parametrize("inherit_env", [False, True])
def test_child_environment_of_a_child_keeps_its_marks(inherit_env: bool) -> None:
    first = child_environment({}, None, inherit_env=inherit_env, mark="a")
    second = child_environment(first, None, inherit_env=inherit_env, mark="b")
    assert child_environment(second, None, inherit_env=inherit_env, mark="c") == {
        MARK_VARIABLE: "a:b:c"
    }


def test_child_environment_list_has_no_variable_for_secrets_or_code() -> None:
    risky = ("KEY", "TOKEN", "SECRET", "PASS", "AUTH", "PROXY", "LD_", "PYTHON", "NODE")
    for name in _child_environment.INHERITED_VARIABLES[:11]:  # the tests add some of their own
        assert not any(word in name for word in risky)


def test_child_environment_on_windows_has_its_variables_in_capitals() -> None:
    """Windows compares names without case, so `Path` and `path` are one variable."""
    ours = {"Path": "a", "SystemRoot": "b", "userprofile": "c", "SECRET": "d", "HOME": "e"}
    assert child_environment(ours, {"path": "x"}, inherit_env=False, mark="m", windows=True) == {
        "PATH": "x",
        "SYSTEMROOT": "b",
        "USERPROFILE": "c",
        "HOME": "e",
        MARK_VARIABLE: "m",
    }
    assert child_environment(ours, None, inherit_env=True, mark="m", windows=True) == {
        "PATH": "a",
        "SYSTEMROOT": "b",
        "USERPROFILE": "c",
        "SECRET": "d",
        "HOME": "e",
        MARK_VARIABLE: "m",
    }


@pytest.mark.parametrize(
    ("environ", "env", "inherit_env", "names"),
    [
        ({"PATH": "/bin"}, None, False, []),
        (
            {"KUBECONFIG": "/k", "https_proxy": "http://u:CANARY@p", "HTTPS_PROXY": "http://p"},
            None,
            False,
            ["HTTPS_PROXY", "https_proxy", "KUBECONFIG"],
        ),
        (
            {"DISPLAY": ":0", "DOCKER_HOST": "unix:///d", "SSH_AUTH_SOCK": "/s"},
            {"DOCKER_HOST": "x"},
            False,
            ["DISPLAY", "SSH_AUTH_SOCK"],
        ),
        ({"https_proxy": "http://p"}, {"HTTPS_PROXY": "http://q"}, False, []),
        ({"NODE_EXTRA_CA_CERTS": "/c", "SSL_CERT_FILE": ""}, None, False, ["NODE_EXTRA_CA_CERTS"]),
        ({"NODE_EXTRA_CA_CERTS": "/c", "DISPLAY": ":0"}, None, True, []),
    ],
)
def test_withheld_text_names_usual_variables_that_a_child_did_not_get(
    environ: dict[str, str], env: dict[str, str] | None, inherit_env: bool, names: list[str]
) -> None:
    given = child_environment(environ, env, inherit_env=inherit_env, mark="m")
    text = withheld_text(environ, given)
    start = "\n  set here, and not passed on to it: "
    assert text == (f"{start}{', '.join(names)} (name what it needs in env)" if names else "")
    assert "CANARY" not in text


def test_child_environment_with_another_value_than_a_string_is_refused() -> None:
    env: dict[str, str] = {"PORT": 8080}  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="the variable PORT must be a string, not int"):
        child_environment({}, env, inherit_env=False, mark="m")
