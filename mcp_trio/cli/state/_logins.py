"""Where the command stores logins: in files of the user, or with `--keychain` in the keychain.

`login` and each subcommand that connects to a server have the option. Only one storage is tried:
otherwise a login in a file would still count after the user has moved to the keychain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core.urls import url_transport
from mcp_trio.cli._errors import CliError

if TYPE_CHECKING:
    import argparse

    from mcp_trio.auth._storage import LockableStorage

__all__ = ["add_keychain_option", "has_login", "login_storage", "uses_keychain"]


def add_keychain_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keychain",
        action="store_true",
        help="store logins in the keychain of the system, and use those in it, instead of files;"
        " needs pip install 'mcp-trio[keyring]'",
    )


def has_login(server: str | tuple[str, ...]) -> bool:
    """Return True if logins at `server`, a URL or the words of a command, are stored."""
    row = url_transport(server) if isinstance(server, str) else None
    return row is not None and row.has_login


def uses_keychain(found: argparse.Namespace, *, has_login: bool) -> bool:
    """Return True if logins are in the keychain.

    Args:
        found: the command's options.
        has_login: whether logins at its server are stored.

    Raises:
        CliError: `--keychain` is given, and the server has no logins.
    """
    keychain: bool = found.keychain
    if keychain and not has_login:
        raise CliError("--keychain needs a server at http:// or https://: others have no login")
    return keychain


def login_storage(keychain: bool) -> LockableStorage:
    """Return the storage of logins.

    Raises:
        CliError: the package `keyring` isn't installed.
    """
    from mcp_trio.auth._keyring import KeyringStorage
    from mcp_trio.auth._storage import FileStorage

    try:
        return KeyringStorage() if keychain else FileStorage()
    except ImportError as exc:
        raise CliError(f"--keychain: {exc}") from None
