"""The files of a directory as resources, for `Server.add_directory`.

1. Nothing outside of the directory is read. A link is followed if it leads to a place inside of it:
   its real path is checked, and then opened part by part without following links, so that a link
   that appears meanwhile isn't followed either.
2. Regular files and directories only: opening a FIFO would wait, and a device may do anything. A
   name that begins with a dot is hidden, as is a name that no URI can have. On Windows a name is
   checked before the system sees it, which would log in to the host of a UNC path.
3. A directory of any size costs a bounded time and memory: so many entries are looked at, and so
   many listed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import nsmallest
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from mcp_core._errors import Fault, McpError
from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.registry import Context, DeclarationError, ResourceNotFound
from mcp_core.registry.functions._content import base64_of, json_text
from mcp_core.types import ResourceContents
from mcp_core.urls._uri_matcher import UriMatcher
from mcp_core.urls._uri_template import InvalidUriTemplate, UriTemplate

__all__ = ["DirectoryReader"]

_MAX_LISTED: Final = 1_000  # entries of a listing
_MAX_SCANNED: Final = 100_000  # entries that a listing looks at: a second or less
# A text that has no more bytes as JSON stays a text, however small `max_size` is.
_MAX_TEXT: Final = 64 * 1024
_MAX_COMPLETED: Final = 100  # values of a completion (server/utilities/completion)
# What a path leads to that doesn't exist for a client. Any other error is the server's own.
_MISSING: Final = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM),
        *(errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO),
    }
)
# Windows lacks these, and opens what the real path was when it was checked.
_NO_FOLLOW: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_WINDOWS: Final = os.sep == "\\"
# Joined to a directory such a name may be an absolute path or another stream of a file; dots and
# spaces at its end don't count; and the names of devices exist in each directory, with any suffix.
_REFUSED_ON_WINDOWS = compile_on_first_use(
    r"(?is).*[\\/:]|.*[. ]$"
    r"|(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\.|$)"
)
_HAS_DESCRIPTORS: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_LISTING: Final = "application/json"
_DIRECTORY: Final = "inode/directory"  # as server/resources names it


class _OpenPath(NamedTuple):
    """A file or directory that is open.

    `handle` is its descriptor, or for a directory its path where those can't be opened.
    """

    handle: int | str
    real: str
    info: os.stat_result


class DirectoryReader:
    """The handlers of the resources of one directory. They block.

    Args:
        path: the directory.
        uri: the URI of the directory itself.
        max_size: the size in bytes above which a file isn't read.

    Raises:
        DeclarationError: there is no such directory, or the URI has an expression.
    """

    def __init__(self, path: str | os.PathLike[str], uri: str, max_size: int) -> None:
        given = os.fspath(path)
        if not isinstance(given, str):
            raise DeclarationError(f"the path of a directory is a string or a Path, not {given!r}")
        self._path = os.path.abspath(given)
        if not os.path.isdir(self._path):
            raise DeclarationError(f"{self._path!r} is not a directory")
        if "{" in uri or "?" in uri or "#" in uri:
            raise DeclarationError(
                f"{uri!r} is the URI of a directory, below which its files are: it has no"
                " expression, query or fragment"
            )
        self.uri = uri.rstrip("/") if not uri.endswith("://") else uri
        self._base = self.uri if self.uri.endswith("/") else f"{self.uri}/"
        self.template = f"{self._base}{{+path}}"
        try:
            self._matcher = UriMatcher(UriTemplate(self.template))
        except InvalidUriTemplate as exc:
            raise DeclarationError(str(exc)) from None
        self._max_size = max_size
        self.name = os.path.basename(self._path) or "files"
        self._types: Any = None

    def __repr__(self) -> str:
        return f"DirectoryReader({self._path!r}, {self.uri!r})"

    # -- Handlers --------------------------------------------------------------------------------

    def read_root(self, context: Context) -> ResourceContents:
        """Return the listing of the directory."""
        return self.read("", context)

    def read(self, path: str, context: Context) -> ResourceContents:
        """Return a file's contents, or the listing of a directory."""
        uri = str(context.params.uri)
        with self._opened(path) as place:
            if stat.S_ISDIR(place.info.st_mode):
                listing = json_text(self._list(place, path))
                return ResourceContents(uri=uri, mime_type=_LISTING, text=listing)
            data = self._read_file(place, context)
        mime_type = self._mime_type(place.real)
        text = self._text_of(data)
        if text is not None:
            return ResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=text)
        mime_type = mime_type or "application/octet-stream"
        return ResourceContents(uri=uri, mime_type=mime_type, blob=base64_of(data))

    def complete(self, typed: str) -> list[str]:
        """Return the paths that begin with `typed`, directories with a slash at their end."""
        _, _, beginning = typed.rpartition("/")
        above = typed.removesuffix(beginning)
        try:
            with self._opened(above) as place:
                names, _ = self._names(place, beginning, _MAX_COMPLETED)
                found = [(above + name, self._inside(place, name)) for name in names]
        except ResourceNotFound:
            return []
        return [
            f"{path}/" if stat.S_ISDIR(info.st_mode) else path
            for path, info in found
            if info is not None and self._uri_of(path) is not None
        ]

    # -- Files and directories -------------------------------------------------------------------

    @contextmanager
    def _opened(self, path: str) -> Iterator[_OpenPath]:
        """Open what is at `path`, relative to the directory, with slashes.

        A slash at the end is for directories only, and no part is empty: otherwise a file would be
        there under many URIs.

        Raises:
            ResourceNotFound: nothing that is served is there.
        """
        *above, last = path.split("/")
        if not all(map(_is_served, above)) or (last and not _is_served(last)):
            raise ResourceNotFound
        try:
            root = os.path.realpath(self._path, strict=True)
            real = os.path.realpath(os.path.join(root, *path.split("/")), strict=True)
            parts = self._parts(root, real)
            handle = self._open(root, real, parts)
        except (ValueError, UnicodeEncodeError):  # a NUL, or half of a surrogate pair
            raise ResourceNotFound from None
        except OSError as exc:
            if exc.errno not in _MISSING:
                raise
            raise ResourceNotFound from None
        try:
            info = os.stat(handle)
            if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
                raise ResourceNotFound
            if path.endswith("/") and not stat.S_ISDIR(info.st_mode):
                raise ResourceNotFound
            yield _OpenPath(handle, real, info)
        finally:
            if isinstance(handle, int):
                os.close(handle)

    def _parts(self, root: str, real: str) -> list[str]:
        """Return the names from `root` to `real`, which both are real paths.

        Raises:
            ResourceNotFound: it isn't below, or is hidden.
        """
        if real == root:
            return []
        base = root if root.endswith(os.sep) else root + os.sep
        parts = real.removeprefix(base).split(os.sep)
        if not real.startswith(base) or not all(map(_is_served, parts)):
            raise ResourceNotFound
        return parts

    def _open(self, root: str, real: str, parts: list[str]) -> int | str:
        if not _HAS_DESCRIPTORS:
            info = os.stat(real)
            _check_kind(info)
            return real if stat.S_ISDIR(info.st_mode) else os.open(real, os.O_RDONLY | _NO_FOLLOW)
        descriptor = os.open(root, os.O_RDONLY | _NO_FOLLOW)
        for part in parts:
            try:
                # Before it is opened: opening a device may have an effect.
                _check_kind(os.stat(part, dir_fd=descriptor, follow_symlinks=False))
                inner = os.open(part, os.O_RDONLY | _NO_FOLLOW, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    def _read_file(self, place: _OpenPath, context: Context) -> bytes:
        size = place.info.st_size
        data = b""
        if size <= self._max_size:
            assert isinstance(place.handle, int)
            with os.fdopen(place.handle, "rb", closefd=False) as file:
                data = file.read(self._max_size + 1)  # it may have grown
            size = len(data)
        if size > self._max_size:
            code = context.peer.dialect.codes[Fault.INTERNAL]
            limit = f"{self._max_size:,} bytes"
            raise McpError(code, f"the file is too large: it has more than {limit}")
        return data

    def _text_of(self, data: bytes) -> str | None:
        """Return the data as text; None if it isn't, or is longer so than the largest blob.

        JSON writes control characters with six bytes each, quotes and line breaks with two.
        """
        largest = max(4 * self._max_size // 3, _MAX_TEXT)
        if b"\0" in data:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        if 6 * len(data) > largest and len(encode(text)) > largest:
            return None
        return text

    def _list(self, place: _OpenPath, path: str) -> dict[str, Any]:
        """Return the listing of a directory that is open at `path`."""
        above = f"{path.rstrip('/')}/" if path.rstrip("/") else ""
        names, is_complete = self._names(place, "", _MAX_LISTED)
        entries = []
        for name in names:
            info, uri = self._inside(place, name), self._uri_of(above + name)
            if info is None or uri is None:
                continue
            entry: dict[str, Any] = {"uri": uri, "name": name}
            if stat.S_ISDIR(info.st_mode):
                entry["mimeType"] = _DIRECTORY
            else:
                entry |= {"mimeType": self._mime_type(name), "size": info.st_size}
            entries.append({key: value for key, value in entry.items() if value is not None})
        return {"entries": entries, "isComplete": is_complete}

    def _names(self, place: _OpenPath, beginning: str, count: int) -> tuple[list[str], bool]:
        """Return the first names in order that begin so, and whether these are all."""
        scanned = 0

        def names() -> Iterator[str]:
            nonlocal scanned
            with os.scandir(place.handle) as found:
                for entry in found:
                    scanned += 1
                    if scanned > _MAX_SCANNED:
                        return
                    name = entry.name
                    if name.startswith(beginning) and _is_served(name):
                        yield name

        found = nsmallest(count + 1, names())
        return found[:count], len(found) <= count and scanned <= _MAX_SCANNED

    def _inside(self, place: _OpenPath, name: str) -> os.stat_result | None:
        """Return what is known of an entry, None if it isn't served."""
        try:
            if isinstance(place.handle, int):
                info = os.stat(name, dir_fd=place.handle, follow_symlinks=False)
            else:
                info = os.lstat(os.path.join(place.real, name))
            if stat.S_ISLNK(info.st_mode):
                root = os.path.realpath(self._path, strict=True)
                real = os.path.realpath(os.path.join(place.real, name), strict=True)
                self._parts(root, real)
                info = os.stat(real)
            _check_kind(info)
        except (OSError, ValueError, ResourceNotFound):
            return None
        return info

    def _uri_of(self, path: str) -> str | None:
        """Return the URI of what is at `path`, None if no URI leads there.

        That is so for names that aren't UTF-8, and for those that a variable refuses.
        """
        try:
            uri = self._base + quote(path)
        except UnicodeEncodeError:
            return None
        values = self._matcher.match(uri)
        return uri if values is not None and values["path"] == path else None

    def _mime_type(self, name: str) -> str | None:
        if self._types is None:
            import mimetypes  # on first use

            # Not what this machine's own files say: the same everywhere.
            self._types = mimetypes.MimeTypes()
            self._types.add_type("text/markdown", ".md")  # RFC 7763; newer Pythons have it
        kind, encoding = self._types.guess_type(os.path.basename(name))
        return None if encoding else kind


def _is_served(name: str) -> bool:
    """Return False for a name that doesn't exist for clients, before the system is asked for it."""
    if not name or name.startswith("."):
        return False
    return not (_WINDOWS and _REFUSED_ON_WINDOWS.match(name))


def _check_kind(info: os.stat_result) -> None:
    """Raise `ResourceNotFound` for a link, FIFO, socket or device."""
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
        raise ResourceNotFound
