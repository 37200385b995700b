"""The options of `mcp-trio login`.

They aren't in `_login.py`, because `mcp-trio login --help` shouldn't import the OAuth client.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_core.adapters import add_recording_options, read_recording
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._options import add_configured_options, refuse_yes
from mcp_trio.cli._parser import EXIT_STATUSES, new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target, trace_printer
from mcp_trio.cli._target import (
    configured_target,
    invalid_url,
    is_url,
    refuse_configured_options,
    require_url,
)
from mcp_trio.cli.state._logins import add_keychain_option, has_login, uses_keychain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.auth import Secret
    from mcp_trio.cli._parser import Command

__all__ = ["parse"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser(
        "login",
        usage="mcp-trio login [options] URL\n       mcp-trio login [options] --server NAME",
        description="Opens a browser, in which you authorize this command to use the server at URL,"
        " or a server\n"
        "of the configuration files, and stores the access token for the other commands.",
        epilog=f"example:\n  mcp-trio login https://mcp.example.com/mcp\n\n{EXIT_STATUSES}",
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="the URL of the server")
    add_configured_options(parser)
    refuse_yes(parser, "a login calls no tools. --approve-server NAME lets a server start")
    parser.add_argument(
        "--client-id",
        metavar="ID",
        help="the id of a client that is registered at the authorization server, if that does not"
        " register clients by itself",
    )
    parser.add_argument(
        "--client-secret-env",
        metavar="VARIABLE",
        help="the environment variable that holds the secret of client ID; the secret is"
        " stored with the token, to renew it",
    )
    parser.add_argument(
        "--issuer",
        metavar="URL",
        help="the authorization server at which the client is registered, and the only one to log"
        " in at; required with a secret",
    )
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        dest="scopes",
        action="append",
        default=[],
        help="request this scope, in addition to those that the server requires (may be repeated)",
    )
    parser.add_argument(
        "--assume-pkce",
        action="store_true",
        help="log in although the authorization server does not say that it supports PKCE; needs"
        " --issuer, and is stored with the login",
    )
    parser.add_argument(
        "--no-resource",
        action="store_true",
        help="do not name the server in the requests for a token; needs --issuer, and --scope,"
        " which then says what the token is for",
    )
    parser.add_argument(
        "--metadata-issuer",
        metavar="TEXT",
        help="the issuer in the metadata of the authorization server, if that is another one than"
        " --issuer, which this needs",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address of the login page, and wait until you have logged in there",
    )
    add_keychain_option(parser)
    parser.add_argument(
        "--trace",
        action="store_true",
        help="show each message on stderr when it is sent or received",
    )
    add_recording_options(parser)
    found = parser.parse_args(words)
    target = _login_target(parser, found)
    _check_deviations(found)
    from ._login import login

    return partial(
        login,
        target,
        client_id=found.client_id,
        client_secret=_client_secret(found),
        issuer=_issuer(found),
        scopes=found.scopes,
        assume_pkce=found.assume_pkce,
        send_resource=not found.no_resource,
        metadata_issuer=found.metadata_issuer,
        open_browser=not found.no_browser,
    )


def _login_target(parser: argparse.ArgumentParser, found: argparse.Namespace) -> Target:
    """Return the server to log in at.

    Raises:
        SystemExit: argparse has printed an error: there is no server, or there are two.
        CliError: there is no such server, or it has no login.
    """
    is_configured = found.server_name is not None or found.config is not None
    if is_configured == (found.url is not None):
        parser.error("give the URL of the server, or --server NAME, and not both")
    if is_configured:
        target = configured_target(parser, found, found.server_name)
        assert target.configured is not None
        if not target.configured.choice.has_login:
            raise CliError(f"{target.name} has no login: only servers at http:// and https:// have")
        return target
    refuse_configured_options(parser, found)
    if not is_url(found.url):
        raise invalid_url(found.url)
    require_url(found.url)
    stderr = Screen(sys.stderr)
    trace = trace_printer(stderr) if found.trace else None
    keychain = uses_keychain(found, has_login=has_login(found.url))
    return Target(
        server=found.url,
        stderr=stderr,
        trace=trace,
        recording=read_recording(parser, found, stderr.write_line),
        keychain=keychain,
    )


def _check_deviations(found: argparse.Namespace) -> None:
    """Check the options that drop a requirement of the specification, as `ClientProfile` does.

    Raises:
        CliError: no authorization server is named that they are for, or no scope says what the
            token is for.
    """
    given = {
        "--assume-pkce": found.assume_pkce,
        "--no-resource": found.no_resource,
        "--metadata-issuer": found.metadata_issuer is not None,
    }
    for option, is_given in given.items():
        if is_given and found.issuer is None:
            raise CliError(
                f"{option} needs the authorization server that it is for, and no other: give"
                " --issuer too"
            )
    if found.no_resource and not found.scopes:
        raise CliError(
            "--no-resource needs the scopes that say what the token is for, because the server must"
            " not choose them: give --scope too"
        )
    if found.metadata_issuer == "":
        raise CliError("--metadata-issuer is empty")


def _client_secret(found: argparse.Namespace) -> Secret | None:
    variable = found.client_secret_env
    if variable is None:
        return None
    if found.client_id is None:
        raise CliError("--client-secret-env needs the id of the client: give --client-id too")
    if found.issuer is None:
        raise CliError(
            "--client-secret-env needs the authorization server that the secret is for: give"
            " --issuer too"
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise CliError(f"--client-secret-env {variable}: that environment variable holds no secret")
    from mcp_core.auth import Secret

    return Secret(value)


def _issuer(found: argparse.Namespace) -> str | None:
    from mcp_core.urls import find_url_error, redacted_url

    issuer: str | None = found.issuer
    if issuer is not None:
        problem = find_url_error(issuer, allow_loopback=True)
        if problem is not None:
            raise CliError(f"--issuer {redacted_url(issuer)} {problem}")
    return issuer
