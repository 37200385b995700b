"""Token storage in the keychain: saved values, split values, and keychains that cannot be used."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING

import keyring
import pytest
import trio
from keyring.backends import chainer, fail, null

from mcp_core.auth import AuthorizationFailed
from mcp_trio import ConnectFailed, FileStorage, KeyringStorage, LoginConfig, connect_http
from mcp_trio.auth import _keyring
from tests.fakes.keychain import (
    ForeignErrorKeychain,
    LockedKeychain,
    MemoryKeychain,
    ReadOnlyKeychain,
    UnencryptedKeychain,
    used,
)
from tests.harness.world.oauth import oauth_world
from tests.harness.world.waiting import until
from tests.trio_.auth.test_authorization import HEADLESS, browse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from keyring.backend import KeyringBackend

WINDOWS = 1_200  # characters
LONG = b"s\xff" * 5_000


@pytest.fixture
def keychain() -> Iterator[MemoryKeychain]:
    keychain = MemoryKeychain()
    with used(keychain):
        yield keychain


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeychain]:
    """The keychain of Windows."""
    monkeypatch.setattr(_keyring, "_MAX_SECRET", WINDOWS)
    keychain = MemoryKeychain(limit=WINDOWS)
    with used(keychain):
        yield keychain


@pytest.mark.requirement("AG-7")
@pytest.mark.parametrize("value", [b"", b"secret", b"\x00\xff\r\n", LONG])
def test_keyring_storage_saved_value_is_loaded(keychain: MemoryKeychain, value: bytes) -> None:
    """Any bytes survive as ASCII, and a deleted or replaced value leaves no parts behind."""
    storage = KeyringStorage()
    assert storage.load("tokens:https://a/") is None
    storage.save("tokens:https://a/", b"before")
    storage.save("tokens:https://a/", value)
    storage.save("client:x", b"2")
    assert KeyringStorage().load("tokens:https://a/") == value
    assert KeyringStorage("another").load("tokens:https://a/") is None
    assert set(keychain.secrets) == {
        ("mcp-trio tokens:https://a/", "mcp-trio"),
        ("mcp-trio client:x", "mcp-trio"),
    }
    assert all(secret.isascii() for secret in keychain.secrets.values())
    storage.save("tokens:https://a/", None)
    storage.save("never", None)
    assert storage.load("tokens:https://a/") is None
    assert len(keychain.secrets) == 1
    assert repr(storage) == "KeyringStorage('mcp-trio')"


def test_keyring_storage_long_value_is_split_for_windows(small: MemoryKeychain) -> None:
    storage = KeyringStorage()
    storage.save("k", LONG)
    assert storage.load("k") == LONG
    assert len(small.secrets) == 13
    storage.save("k", LONG[:3_000])
    assert storage.load("k") == LONG[:3_000]
    assert len(small.secrets) == 5
    storage.save("k", b"short")
    assert storage.load("k") == b"short"
    assert len(small.secrets) == 1
    storage.save("k", LONG)
    storage.save("k", None)
    assert small.secrets == {}


@pytest.mark.parametrize("writes", range(13))
def test_keyring_storage_save_of_part_failed_keeps_the_old_value(
    small: MemoryKeychain, writes: int
) -> None:
    storage = KeyringStorage()
    storage.save("k", LONG[:2_000])
    before = dict(small.secrets)
    small.writes_left = writes
    with pytest.raises(AuthorizationFailed, match="the disk is full"):
        storage.save("k", LONG)
    assert small.secrets == before


def test_keyring_storage_replaced_while_read_gives_one_of_both_values(
    small: MemoryKeychain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long value has several parts, and parts from two saves must never be joined."""
    one, other = KeyringStorage(), KeyringStorage()
    one.save("k", LONG)
    get, reads = small.get_password, 0

    def get_during_save(service: str, username: str) -> str | None:
        nonlocal reads
        reads += 1
        if reads == 3:
            other.save("k", b"new" * 2_000)
        return get(service, username)

    monkeypatch.setattr(small, "get_password", get_during_save)
    assert one.load("k") == b"new" * 2_000


@pytest.mark.parametrize(("damage", "times"), [("part missing", 3), ("not base64", 1)])
def test_keyring_storage_damaged_value_counts_as_absent(
    small: MemoryKeychain,
    damage: str,
    times: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A part is missing too while another process replaces the value: it is read again."""
    storage = KeyringStorage()
    reads: Counter[str] = Counter()
    get = small.get_password

    def count(service: str, username: str) -> str | None:
        reads[service] += 1
        return get(service, username)

    monkeypatch.setattr(small, "get_password", count)
    storage.save("k", LONG if damage == "part missing" else b"1")
    names = list(small.secrets)
    if damage == "part missing":
        del small.secrets[names[0]]
    else:
        small.secrets[names[0]] = "edited by hand"
    reads.clear()
    with caplog.at_level(logging.WARNING, "mcp_trio"):
        assert storage.load("k") is None
    assert reads[storage._name("k")] == times
    assert "only a part of k, which is not used; log in again" in caplog.text
    storage.save("k", b"2")
    assert storage.load("k") == b"2"


def test_keyring_storage_huge_value_is_refused(keychain: MemoryKeychain) -> None:
    with pytest.raises(AuthorizationFailed, match="65537 bytes, more than the 65536"):
        KeyringStorage().save("k", b"x" * 65_537)
    KeyringStorage().save("k", b"x" * 65_536)
    assert len(keychain.secrets) == 1


UNUSABLE: list[tuple[type[KeyringBackend], str]] = [
    (LockedKeychain, r"is locked, or denied access \(Failed to .*\)\. Unlock it, and try again"),
    (fail.Keyring, r"no keychain that .* can use\. On Linux, start a Secret Service"),
    (null.Keyring, "is switched off by its configuration"),
    (UnencryptedKeychain, "only UnencryptedKeychain, which may not encrypt"),
    (ReadOnlyKeychain, "none of the keychains .* can be written to"),
    (ForeignErrorKeychain, r"the keychain failed \(OSError\)"),
]


@pytest.mark.requirement("AG-7")
@pytest.mark.parametrize(("unusable", "text"), UNUSABLE)
def test_keyring_storage_unusable_keychain_raises_with_cure(
    unusable: type[KeyringBackend], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stores nothing elsewhere, as in a file."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    backend = unusable()
    with used(backend):
        storage = KeyringStorage()
        if unusable is not ReadOnlyKeychain:
            with pytest.raises(AuthorizationFailed, match=text) as caught:
                storage.load("k")
            assert "CANARY" not in str(caught.value)
        with pytest.raises(AuthorizationFailed, match=text) as caught:
            storage.save("k", b"CANARY-secret")
        assert "CANARY" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert getattr(backend, "secrets", {}) == {}


def test_keyring_storage_file_backend_chosen_by_the_user_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.fakes.keychain.UnencryptedKeychain")
    backend = UnencryptedKeychain()
    with used(backend):
        KeyringStorage().save("k", b"1")
    assert len(backend.secrets) == 1


def test_keyring_storage_unknown_backend_in_the_configuration_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "no.such.Keyring")
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    with pytest.raises(AuthorizationFailed, match=r"is wrong \(No module named 'no'\)\. `python"):
        KeyringStorage().load("k")


@pytest.mark.requirement("AG-7")
def test_keyring_storage_chain_never_writes_to_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain itself passes a secret on to the next backend if the first can only read."""
    first, second, last = ReadOnlyKeychain(), MemoryKeychain(), UnencryptedKeychain()
    monkeypatch.setattr(chainer.ChainerBackend, "backends", [first, second, last])
    chain = chainer.ChainerBackend()  # type: ignore[no-untyped-call]
    with used(chain):
        storage = KeyringStorage()
        storage.save("k", b"1")
        assert storage.load("k") == b"1"
        assert (len(first.secrets), len(second.secrets), len(last.secrets)) == (0, 1, 0)
        storage.save("k", None)
        assert second.secrets == {}
    monkeypatch.setattr(chainer.ChainerBackend, "backends", [first, last])
    with used(chain), pytest.raises(AuthorizationFailed, match="can be written"):
        KeyringStorage().save("k", b"1")
    assert last.secrets == {}


def test_keyring_storage_lock_is_exclusive(
    keychain: MemoryKeychain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keychain has no locks, so files lock it, apart from the locks of `FileStorage`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    one, other = KeyringStorage(), KeyringStorage()
    unlock = one.lock("k")
    assert unlock is not None
    assert other.lock("k") is None
    files = FileStorage().lock("k")  # another storage, with tokens of its own
    assert files is not None
    files()
    unlock()
    unlock = other.lock("k")
    assert unlock is not None
    unlock()
    assert [file.read_bytes() for file in FileStorage().directory.iterdir()] == [b"", b""]


def test_keyring_storage_without_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ImportError, match=r"^the keychain .*: pip install 'mcp-trio\[keyring\]'$"):
        KeyringStorage()


@pytest.mark.process
def test_keyring_package_is_imported_on_first_use_only() -> None:
    program = (
        "import sys, mcp_trio; mcp_trio.LoginConfig(storage=mcp_trio.KeyringStorage());"
        "print('keyring' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"
    assert keyring.__name__ in sys.modules


async def test_two_clients_with_one_keychain_refresh_once(
    keychain: MemoryKeychain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two processes do. The calls of the keychain block threads, not the event loop."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    threads: set[bool] = set()
    get = keychain.get_password

    def note_thread(service: str, username: str) -> str | None:
        threads.add(threading.current_thread() is threading.main_thread())
        return get(service, username)

    monkeypatch.setattr(keychain, "get_password", note_thread)

    refused: list[str] = []  # the keys of the locks that the other client has to wait for
    lock = KeyringStorage.lock

    def watched(storage: KeyringStorage, key: str) -> Callable[[], None] | None:
        release = lock(storage, key)
        if release is None:
            refused.append(key)
        return release

    monkeypatch.setattr(KeyringStorage, "lock", watched)

    def login() -> LoginConfig:
        return LoginConfig(profile=HEADLESS, storage=KeyringStorage(), browse=browse)

    async with (
        oauth_world() as world,
        connect_http(world.url, auth=login(), versions=["2025-11-25"]) as one,
        connect_http(world.url, auth=login(), versions=["2025-11-25"]) as other,
        trio.open_nursery() as nursery,
    ):
        assert world.tokens == 1
        world.good.clear()
        world.paused = trio.Event()
        nursery.start_soon(one.list_tools)
        await world.waits.wait()
        nursery.start_soon(other.list_tools)
        await until(lambda: refused)
        world.paused.set()
    assert world.tokens == 2
    assert threads == {False}


async def test_locked_keychain_ends_the_login_before_the_user_is_asked() -> None:
    with used(LockedKeychain()):
        login = LoginConfig(profile=HEADLESS, storage=KeyringStorage(), browse=browse)
        async with oauth_world() as world:
            with pytest.raises(ConnectFailed, match="the keychain is locked") as caught:
                async with connect_http(world.url, auth=login, versions=["2025-11-25"]):
                    pass
            assert isinstance(caught.value.__cause__, AuthorizationFailed)
            assert world.requests == []


async def test_keychain_that_cannot_be_written_to_is_logged(
    keychain: MemoryKeychain, caplog: pytest.LogCaptureFixture
) -> None:
    """The login itself has succeeded, and its tokens are used until the client is closed."""
    keychain.writes_left = 0
    login = LoginConfig(profile=HEADLESS, storage=KeyringStorage(), browse=browse)
    async with (
        oauth_world() as world,
        connect_http(world.url, auth=login, versions=["2025-11-25"]) as client,
    ):
        await client.list_tools()
    text = "cannot be kept in KeyringStorage('mcp-trio'): the keychain failed (the disk is full)"
    assert text in caplog.text
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize(
    ("size", "secrets"), [(900, 1), (901, 3), (1_800, 3), (1_801, 4), (65_536, 74)]
)
def test_keyring_storage_value_has_as_few_secrets_as_it_needs(
    small: MemoryKeychain, size: int, secrets: int
) -> None:
    """Base64 makes four characters of three bytes. One more secret names the parts."""
    storage = KeyringStorage()
    value = (LONG * 7)[:size]
    storage.save("k", value)
    assert len(small.secrets) == secrets
    assert storage.load("k") == value
    storage.save("k", None)
    assert small.secrets == {}
