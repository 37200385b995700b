"""Results that are written to files: `--output` of `call` and `read`.

1. FILE is replaced as a whole, as by curl: a reader sees the old file or the new one, and a failure
   leaves the old one. Its mode stays; a symbolic link stays, too, and its target is replaced. A
   device or a FIFO is written to.
2. Several contents get numbered names. A server never chooses a name: in a directory, a name is a
   word of the command line with a suffix for the media type. A link with such a name is replaced.
3. `-` is stdout.
"""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
import stat
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core import RemoteProtocolError
from mcp_core.types import AudioContent, EmbeddedResource, ImageContent
from mcp_trio.cli._errors import CliError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import ContentBlock, ResourceContents
    from mcp_trio.cli._screen import Screen

__all__ = [
    "STDOUT",
    "FileContent",
    "bytes_of_contents",
    "file_content",
    "write_file",
    "write_files",
]

STDOUT: Final = Path("-")
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]|^\.")


class FileContent(NamedTuple):
    """The bytes of one content, and its media type if the server gave it."""

    data: bytes
    mime_type: str | None


def file_content(block: ContentBlock) -> FileContent | None:
    """Return the bytes of an image, a sound or an embedded resource; None for other content.

    Raises:
        RemoteProtocolError: it isn't base64.
    """
    if isinstance(block, EmbeddedResource):
        mime_type = block.resource.mime_type
        if mime_type is None and block.resource.text is not None:
            mime_type = "text/plain"
        return FileContent(bytes_of_contents(block.resource), mime_type)
    if isinstance(block, ImageContent | AudioContent):
        return FileContent(_decode(block.data, f"the {block.type}"), block.mime_type)
    return None


def bytes_of_contents(found: ResourceContents) -> bytes:
    """Return a resource's contents: text as UTF-8, or a blob decoded.

    Raises:
        RemoteProtocolError: the blob isn't base64.
    """
    if found.blob is None:
        return (found.text or "").encode()
    return _decode(found.blob, f"the blob of {found.uri}")


def _decode(base64: str, name: str) -> bytes:
    try:
        return b64decode(base64, validate=True)
    except ValueError as exc:
        raise RemoteProtocolError(f"{name} is not base64 ({exc})") from None


def write_files(output: Path, contents: Sequence[FileContent], stem: str, stderr: Screen) -> None:
    """Write each content to a file, and names that the user did not choose to `stderr`.

    One content goes to `output`. For several, `shot.png` becomes `shot-1.png` and so on. If
    `output` is a directory, the names begin with `stem`.

    Raises:
        CliError: a file cannot be written.
    """
    in_directory = output.is_dir()
    for number, content in enumerate(contents, 1):
        path = output
        if in_directory:
            path = output / f"{_NOT_IN_NAMES.sub('_', stem)}{_suffix(content.mime_type or '')}"
        if len(contents) > 1:
            path = path.with_name(f"{path.stem}-{number}{path.suffix}")
        write_file(path, content.data, follow_link=path == output)
        if path != output:
            stderr.write_line(f"mcp-trio: {path} has {len(content.data)} bytes")


def _suffix(mime_type: str) -> str:
    # The table has audio/x-wav, for example, but not audio/wav.
    guess = mimetypes.guess_extension
    return guess(mime_type) or guess(mime_type.replace("/", "/x-", 1)) or ".bin"


def write_file(path: Path, data: bytes, *, follow_link: bool = True) -> None:
    """Replace a file, or create it.

    Args:
        path: the file.
        data: its new content.
        follow_link: False for a name that the user did not choose: a link is replaced.

    Raises:
        CliError: it cannot be written.
    """
    try:
        _replace(path, data, follow_link=follow_link)
    except OSError as exc:
        raise CliError(
            f"{path} cannot be written: {exc.strerror}; give --output another file"
        ) from exc


def _replace(path: Path, data: bytes, *, follow_link: bool) -> None:
    mode = None
    if follow_link or not path.is_symlink():
        with suppress(FileNotFoundError):
            mode = path.stat().st_mode
            path = path.resolve()
    if mode is not None and not stat.S_ISREG(mode):
        path.write_bytes(data)  # a device or a FIFO; a directory raises
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
        temporary.replace(path)
    except BaseException:  # a signal, too
        temporary.unlink(missing_ok=True)
        raise
