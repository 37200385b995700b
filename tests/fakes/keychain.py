"""Keychains for tests, as backends of the package `keyring`."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError, PasswordSetError

if TYPE_CHECKING:
    from collections.abc import Iterator


class MemoryKeychain(KeyringBackend):
    """A keychain in memory. A secret of more than `limit` characters raises, as on Windows."""

    priority = 5.0

    def __init__(self, limit: int = 1_000_000) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.secrets: dict[tuple[str, str], str] = {}
        self.limit = limit
        self.writes_left = 1_000_000

    def get_password(self, service: str, username: str) -> str | None:
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self.limit:
            raise PasswordSetError("The stub received bad data")
        if not self.writes_left:
            raise PasswordSetError("the disk is full")
        self.writes_left -= 1
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if (service, username) not in self.secrets:
            raise PasswordDeleteError("no such password")
        del self.secrets[service, username]


class LockedKeychain(MemoryKeychain):
    """A keychain whose user dismisses each prompt."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked("Failed to unlock the collection!")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise KeyringLocked("Failed to unlock the collection!")


class ReadOnlyKeychain(MemoryKeychain):
    """A backend for a package index, which makes passwords of its own."""

    priority = 9.0

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


class UnencryptedKeychain(MemoryKeychain):
    """As `PlaintextKeyring` of keyrings.alt, which `keyring` takes if there is no other."""

    priority = 0.5


class ForeignErrorKeychain(MemoryKeychain):
    """A backend that starts a program, which fails."""

    def get_password(self, service: str, username: str) -> str | None:
        raise OSError("CANARY-command-line")


class FileKeychain(MemoryKeychain):
    """A keychain that processes of a test share: a file that the variable KEYCHAIN names."""

    def get_password(self, service: str, username: str) -> str | None:
        self._read()
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._read()
        if os.environ.get("KEYCHAIN_FULL"):
            raise PasswordSetError("the disk is full")
        super().set_password(service, username, password)
        self._write()

    def delete_password(self, service: str, username: str) -> None:
        self._read()
        super().delete_password(service, username)
        self._write()

    def _read(self) -> None:
        path = Path(os.environ["KEYCHAIN"])
        rows = json.loads(path.read_text()) if path.exists() else []
        self.secrets = {(service, username): secret for service, username, secret in rows}

    def _write(self) -> None:
        rows = [[*names, secret] for names, secret in self.secrets.items()]
        Path(os.environ["KEYCHAIN"]).write_text(json.dumps(rows))


@contextmanager
def used(keychain: KeyringBackend) -> Iterator[None]:
    """Have the package `keyring` use `keychain` for the duration of the block."""
    before = keyring.core._keyring_backend
    keyring.set_keyring(keychain)
    try:
        yield
    finally:
        keyring.core._keyring_backend = before


def configure(directory: Path, keychain: type[KeyringBackend]) -> dict[str, str]:
    """Configure `keyring` in `directory`. Return the environment of a process that uses that."""
    (directory / "python_keyring").mkdir(exist_ok=True)
    (directory / "python_keyring" / "keyringrc.cfg").write_text(
        f"[backend]\ndefault-keyring={keychain.__module__}.{keychain.__name__}\n"
    )
    return {"XDG_CONFIG_HOME": str(directory), "KEYCHAIN": str(directory / "keychain.json")}
