"""The options for recording a conversation in a trace file."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_core._on_first_use import type_on_first_use

if TYPE_CHECKING:
    from ._recorder import Recording
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")

__all__ = ["add_recording_options", "read_recording"]

_MIB = 1024 * 1024


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add `--record`, and the options for what is recorded, to `parser`."""
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record the conversation in FILE, without tokens and other secrets, for"
        " `mcp-trio show`; a file that exists is replaced",
    )
    parser.add_argument(
        "--record-secrets",
        action="store_true",
        help="record everything, with tokens and other secrets",
    )
    parser.add_argument(
        "--record-limit",
        metavar="MIB",
        type=_mebibytes,
        help="record at most so many MiB (default: 256)",
    )
    parser.add_argument(
        "--redact",
        metavar="POINTER",
        action="append",
        default=[],
        help="hide the value at this JSON pointer of each recorded message, such as"
        " /params/arguments/password (may be repeated)",
    )


def read_recording(
    parser: argparse.ArgumentParser, found: argparse.Namespace, say: Callable[[str], object]
) -> Recording | None:
    """Return the recording that the options ask for, or None.

    Args:
        parser: for errors.
        found: what it has parsed.
        say: gets a warning for the user, if secrets are recorded.

    Raises:
        SystemExit: argparse has printed an error.
    """
    if found.record is None:
        for option in "record_secrets", "record_limit", "redact":
            if getattr(found, option):
                parser.error(f"--{option.replace('_', '-')} needs a file: add --record FILE")
        return None
    if found.record_secrets and found.redact:
        parser.error("--record-secrets hides nothing: leave it or --redact out")
    from ._recorder import Recording

    options = {} if found.record_limit is None else {"file_limit": found.record_limit}
    try:
        recording = Recording(
            path=found.record,
            redact=tuple(found.redact),
            with_secrets=found.record_secrets,
            **options,
        )
    except ValueError as exc:
        parser.error(f"--redact: {exc}")
    if found.record_secrets:
        say(f"mcp-trio: {found.record} will have all secrets of this conversation")
    return recording


def _mebibytes(text: str) -> int:
    number = float(text) * _MIB
    size = int(number) if math.isfinite(number) else 0
    if not size > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a size; give a number of MiB above 0")
    return size


_mebibytes.__name__ = "number of MiB"  # argparse shows this name if `float` raises
