"""The environment of a server that a client starts as a child process.

1. A server gets a short list of variables and those that the caller names. Tokens and passwords
   that the client's environment happens to have stay there.
2. Each child has a random mark in one variable, which the processes that it starts inherit
   (`_process_tree.py` finds them by it).
3. Some programs need a variable that isn't on the list, such as one that names a proxy. When a
   child could not be started, the error names those that are set here and weren't passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_core._inherited_variables import INHERITED_VARIABLES, MARK_VARIABLE, WINDOWS_VARIABLES

__all__ = [
    "INHERITED_VARIABLES",
    "MARK_VARIABLE",
    "WINDOWS_VARIABLES",
    "child_environment",
    "withheld_text",
]

# What programs often need besides: proxies, CA bundles, and sockets and files of other programs.
# Proxy variables are written in small letters, too.
_USUAL_VARIABLES: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DOCKER_HOST",
    "SSH_AUTH_SOCK",
    "KUBECONFIG",
)


def child_environment(
    environ: Mapping[str, str],
    env: Mapping[str, str] | None,
    *,
    inherit_env: bool,
    mark: str,
    windows: bool = False,
) -> dict[str, str]:
    """Return a child's environment.

    Args:
        environ: this process's environment.
        env: variables that the child gets as well; they replace inherited ones of the same name.
        inherit_env: whether it gets all of `environ`, in place of `INHERITED_VARIABLES`.
        mark: random text without a colon, for `MARK_VARIABLE`. If this process is itself such a
            child, its own marks precede it.
        windows: whether the rules of Windows hold: `WINDOWS_VARIABLES` are inherited too, and names
            that differ only in case are equal. All are returned in capitals.

    Raises:
        TypeError: a value of `env` isn't a string.
    """
    for name, value in (env or {}).items():
        if not isinstance(value, str):  # it may be a secret, so it isn't shown
            raise TypeError(f"the variable {name} must be a string, not {type(value).__name__}")
    inherited = INHERITED_VARIABLES
    if windows:
        inherited += WINDOWS_VARIABLES
        environ = {name.upper(): value for name, value in environ.items()}
        env = {name.upper(): value for name, value in (env or {}).items()}
    if inherit_env:
        found = dict(environ)
    else:
        # A value that begins with "()" is a function that a shell has exported. Another shell would
        # define this function, and an old shell would also run commands after it.
        found = {
            name: environ[name]
            for name in inherited
            if not environ.get(name, "()").startswith("()")
        }
    found |= env or {}
    marks = environ.get(MARK_VARIABLE)
    found[MARK_VARIABLE] = f"{marks}:{mark}" if marks else mark
    return found


def withheld_text(environ: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Return which usual variables a child didn't get, as a line to append to an error.

    It begins with a line break, and is "" if there are none.
    Values aren't shown: the address of a proxy may have a password.

    Args:
        environ: this process's environment.
        given: the child's, as `child_environment` has returned it.
    """
    known = given.keys() | {name.upper() for name in given}
    names = [
        name
        for usual in _USUAL_VARIABLES
        for name in (usual, usual.lower())
        if environ.get(name) and known.isdisjoint((name, usual))
    ]
    if not names:
        return ""
    return f"\n  set here, and not passed on to it: {', '.join(names)} (name what it needs in env)"
