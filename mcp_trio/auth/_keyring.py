"""Store tokens in the system's keychain, with the package `keyring`.

1. Each value is one secret of the keychain, in base64: keychains store text, and some change line
   breaks.
2. Values are stored in keychains only. A backend that writes plain files is refused, unless the
   user has configured it for `keyring`.
3. A value that is too long for one secret is split. First its parts are stored, then the secret
   that names them. Last, the old value's parts are deleted. So no reader gets half a value.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from mcp_core.auth import AuthorizationFailed

from ._storage import FileStorage, LockableStorage

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

__all__ = ["KeyringStorage"]

_log = logging.getLogger("mcp_trio")

# The account name of all secrets. The key is in the service name instead: with several accounts for
# one service, the Windows backend moves secrets, and two processes cannot do that at a time.
_ACCOUNT: Final = "mcp-trio"
_MAX_SIZE: Final = 65_536  # bytes of a value; servers accept headers of 8 to 64 KiB
# Characters of one secret. Windows allows 2560 bytes (CRED_MAX_CREDENTIAL_BLOB_SIZE), and `keyring`
# writes UTF-16: 1280 characters, less a margin. Other systems allow much more. There few secrets
# are better, because macOS may ask the user for each one.
_MAX_SECRET: Final = 1_200 if sys.platform == "win32" else 100_000
# The secret that names a value's parts: their number, and a random prefix of their names. It can't
# be a value, because base64 has no spaces. The largest value has 73 parts.
_SPLIT: Final = re.compile(r"split (\d{1,2}) ([0-9a-f]{16})")
_READS: Final = 3  # attempts to read a split value, which another process may be replacing


class KeyringStorage(LockableStorage):
    """A `TokenStorage` in the system's keychain, with the package `keyring`.

    On macOS this is the Keychain, on Windows the Credential Manager, and on Linux a Secret Service
    such as GNOME Keyring or KWallet. It needs the extra: `pip install 'mcp-trio[keyring]'`.

    Args:
        service: the prefix of the name of each entry in the keychain. Programs with the same prefix
            share their logins. The default is `mcp-trio`, which the command `mcp-trio` uses too.

    *Error handling*: if the keychain is missing, locked, or writes plain files, the methods raise
    `AuthorizationFailed` with the cure. Tokens are never stored elsewhere. A file backend is used
    if the user has configured it for `keyring`. A value of more than 64 KiB is refused.

    *Resource handling*: `load` and `save` block while the keychain asks the user to unlock it.
    Clients call them in worker threads. The lock files, which are empty, are in `FileStorage`'s
    directory.

    Raises:
        ImportError: `keyring` isn't installed.
    """

    def __init__(self, service: str = "mcp-trio") -> None:
        if find_spec("keyring") is None:
            raise ImportError(
                "the keychain of the system needs keyring: pip install 'mcp-trio[keyring]'",
                name="keyring",
            )
        self.service = service
        self._locks = FileStorage()
        self._found: Sequence[KeyringBackend] = ()

    def __repr__(self) -> str:
        return f"KeyringStorage({self.service!r})"

    def load(self, key: str) -> bytes | None:
        """Return the value that was saved under `key`, or None.

        If a part of the value is missing or damaged, log that and return None.

        Raises:
            AuthorizationFailed: the keychain is missing, locked or fails; the text has the cure.
        """
        with _explained():
            for _ in range(_READS):
                text = self._get(self._name(key))
                if text is None:
                    return None
                parts = [self._get(name) for name in self._names_of_parts(key, text)]
                joined = "".join(part for part in parts if part is not None)
                try:
                    # A part is missing if another process has just replaced the value.
                    if None not in parts:
                        return b64decode(joined if parts else text, validate=True)
                except ValueError:
                    break
        # The key isn't a secret: it has the URL of the MCP server or authorization server.
        _log.warning("the keychain has only a part of %s, which is not used; log in again", key)
        return None

    def save(self, key: str, value: bytes | None) -> None:
        """Store `value`, of at most 64 KiB, under `key`. None deletes the stored value.

        Raises:
            AuthorizationFailed: `value` is longer, or the keychain is missing, locked, read-only or
                fails.
        """
        if value is not None and len(value) > _MAX_SIZE:
            raise AuthorizationFailed(
                f"the tokens have {len(value)} bytes, more than the {_MAX_SIZE} that are stored"
                " in a keychain; ask the authorization server for fewer scopes or claims"
            )
        with _explained():
            name = self._name(key)
            old = self._names_of_parts(key, self._get(name) or "")
            if value is None:
                self._delete(name)
            else:
                self._set_value(key, name, b64encode(value).decode())
            for part in old:
                self._delete(part)

    def lock(self, key: str) -> Callable[[], None] | None:
        """Lock `key` against other processes with an empty file, like `FileStorage.lock`."""
        return self._locks.lock(self._name(key))

    def _name(self, key: str) -> str:
        return f"{self.service} {key}"

    def _set_value(self, key: str, name: str, text: str) -> None:
        if len(text) <= _MAX_SECRET:
            self._set(name, text)
            return
        count = -(-len(text) // _MAX_SECRET)
        split = f"split {count} {secrets.token_hex(8)}"
        names = self._names_of_parts(key, split)
        try:
            for index, part in enumerate(names):
                self._set(part, text[index * _MAX_SECRET : (index + 1) * _MAX_SECRET])
            self._set(name, split)
        except BaseException:
            for part in names:
                with suppress(Exception):  # the first failure matters more
                    self._delete(part)
            raise

    def _names_of_parts(self, key: str, text: str) -> list[str]:
        """Return the names of the parts that `text` names. A value itself names none."""
        split = _SPLIT.fullmatch(text)
        if split is None:
            return []
        return [f"{self._name(key)} {split[2]}.{index}" for index in range(int(split[1]))]

    def _get(self, name: str) -> str | None:
        for backend in self._backends():
            text = backend.get_password(name, _ACCOUNT)
            if text is not None:
                return text
        return None

    def _set(self, name: str, text: str) -> None:
        for backend in self._backends():
            try:
                backend.set_password(name, _ACCOUNT, text)
            except NotImplementedError:  # a read-only backend, such as those for package indexes
                continue
            return
        raise AuthorizationFailed(
            "none of the keychains of the package keyring can be written to. `python -m keyring"
            " diagnose` lists its configuration"
        )

    def _delete(self, name: str) -> None:
        for backend in self._backends():
            if backend.get_password(name, _ACCOUNT) is not None:
                backend.delete_password(name, _ACCOUNT)

    def _backends(self) -> Sequence[KeyringBackend]:
        """Return the keychains in the order in which to try them.

        Raises:
            AuthorizationFailed: there is none that keeps secrets.
        """
        if not self._found:
            try:
                self._found = _find_backends()
            except AuthorizationFailed:
                raise
            except Exception as exc:  # `keyring` imports the backend that the user has configured
                raise AuthorizationFailed(
                    f"the configuration of the package keyring is wrong ({exc}). `python -m keyring"
                    " diagnose` names its file; PYTHON_KEYRING_BACKEND comes before it"
                ) from exc
        return self._found


def _find_backends() -> Sequence[KeyringBackend]:
    from keyring import core
    from keyring.backends import chainer, fail, null

    backend = core.get_keyring()
    if isinstance(backend, null.Keyring):
        raise AuthorizationFailed(
            "the package keyring is switched off by its configuration. `python -m keyring"
            " diagnose` names the file; PYTHON_KEYRING_BACKEND chooses a keychain"
        )
    found = list(backend.backends) if isinstance(backend, chainer.ChainerBackend) else [backend]
    # A backend with a priority below 1 writes files, perhaps unencrypted. `keyring` uses such a
    # backend if it finds nothing better.
    keychains = [each for each in found if core.recommended(each)]
    if not keychains and (core.load_env() or core.load_config()):
        keychains = found  # the user has chosen it
    if keychains:
        return keychains
    files = [type(each).__name__ for each in found if not isinstance(each, fail.Keyring)]
    only = f", only {', '.join(files)}, which may not encrypt; PYTHON_KEYRING_BACKEND chooses it"
    raise AuthorizationFailed(
        f"there is no keychain that the package keyring can use{only if files else ''}. On Linux,"
        " start a Secret Service (GNOME Keyring, KWallet) in your session. Or use FileStorage, as"
        " the command does without --keychain"
    )


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the keychain's errors into an AuthorizationFailed with cause and cure.

    Only the texts of `keyring`'s own errors are included. Another error could contain a value, such
    as the command line of a program that a backend has started.
    """
    from keyring.errors import KeyringError, KeyringLocked

    try:
        yield
    except AuthorizationFailed:
        raise
    except KeyringLocked as exc:
        raise AuthorizationFailed(
            f"the keychain is locked, or denied access ({exc}). Unlock it, and try again"
        ) from exc
    except Exception as exc:  # a backend raises what its library raises
        cause = f"{exc}" if isinstance(exc, KeyringError) else type(exc).__name__
        raise AuthorizationFailed(
            f"the keychain failed ({cause}). `python -m keyring diagnose` lists its configuration"
        ) from exc
