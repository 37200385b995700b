"""Storage of tokens in the system's keychain, through the package `keyring`.

1. Each value is a secret of its own, in base64: keychains store text, and some change line ends.
2. Values leave this process only into a keychain: a backend that writes plain files is refused,
   unless the user has chosen it for `keyring`.
3. A value that is too long for one secret is split. Its parts are stored before the secret that
   names them, and those of the last value are deleted after it: no reader sees half a value.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from base64 import b64decode, b64encode
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from mcp_core.auth import AuthorizationFailed

from ._storage import FileStorage, LockableStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from keyring.backend import KeyringBackend

__all__ = ["KeyringStorage"]

_log = logging.getLogger("mcp_trio")

# The account of each secret. The service has the key: the backend for Windows moves secrets of one
# service about when there are several accounts, which two processes cannot do at the same time.
_ACCOUNT: Final = "mcp-trio"
_MAX_SIZE: Final = 65_536  # bytes of a value; servers accept headers of 8 to 64 KiB
# Characters of one secret. Windows has 2560 bytes (CRED_MAX_CREDENTIAL_BLOB_SIZE), and `keyring`
# writes UTF-16: 1280, less a margin. Others have no limit that matters, and macOS may ask the user
# for each secret.
_MAX_SECRET: Final = 1_200 if sys.platform == "win32" else 100_000
# A secret that names parts, by their number and the random beginning of their names. No base64 has
# a space. The largest value has 73 parts.
_SPLIT: Final = re.compile(r"split (\d{1,2}) ([0-9a-f]{16})")
_READS: Final = 3  # times that a split value is read, while other processes replace it


class KeyringStorage(LockableStorage):
    """A `TokenStorage` in the system's keychain, by the package `keyring`.

    That is the Keychain on macOS, the Credential Manager on Windows, and on Linux a Secret Service,
    such as those of GNOME and KDE. It needs the extra: `pip install 'mcp-trio[keyring]'`.

    Args:
        service: the beginning of the name of each entry in the keychain. Programs with the same
            one share their logins; that of the command is `mcp-trio`, the default.

    *Error handling*: a keychain that is missing, locked, or writes plain files raises
    `AuthorizationFailed`, with the cure; tokens are never stored elsewhere instead. A file backend
    that the user has configured for `keyring` is used. A value of more than 64 KiB is refused.

    *Resource handling*: `load` and `save` block, as long as the keychain asks the user to unlock
    it; clients call them in worker threads. Lock files, which are empty, are in the directory of
    `FileStorage`.

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

        If a part of it is missing or was changed, that is logged, and the result is None.

        Raises:
            AuthorizationFailed: the keychain is missing, locked or failed; the text has the cure.
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
        """Replace what is stored under `key` by `value`, of at most 64 KiB. None deletes it.

        Raises:
            AuthorizationFailed: `value` is longer, or the keychain is missing, locked, read-only or
                failed.
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
        """Lock `key` against other processes, as `FileStorage.lock`, by an empty file."""
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
                with suppress(Exception):  # the reason of the failure matters more
                    self._delete(part)
            raise

    def _names_of_parts(self, key: str, text: str) -> list[str]:
        """Return the names of the secrets that `text` names; none if it is a value itself."""
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
            except NotImplementedError:  # a backend that only reads, as those of package indexes
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
        """Return the keychains to use, in the order in which they are tried.

        Raises:
            AuthorizationFailed: there is none, or it would not keep secrets.
        """
        if not self._found:
            try:
                self._found = _find_backends()
            except AuthorizationFailed:
                raise
            except Exception as exc:  # it imports and creates what the user has configured
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
    # Those below 1 write files, some of them unencrypted: `keyring` takes one without a better one.
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
    """Turn errors of the keychain into an AuthorizationFailed with cause and cure.

    The text has that of errors of `keyring` only: others could name a value, as the error of a
    program that was started with it.
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
