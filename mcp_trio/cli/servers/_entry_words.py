"""Words of a command line that become the entry of a server in a configuration file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mcp_trio.cli._errors import CliError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["split_variables"]


def split_variables(
    variables: Sequence[tuple[str, str | None]], *, shared: bool
) -> tuple[dict[str, str], bool, tuple[str, ...]]:
    """Return the variables with values, whether any came from the environment, and the others.

    Args:
        variables: names and values. None takes the value that the variable has here, or, in a
            shared file such as a project's, a reference to the variable.
        shared: whether others may get the file.

    Raises:
        CliError: a variable isn't set, or a value isn't UTF-8.
    """
    values: dict[str, str] = {}
    forwarded: list[str] = []
    taken = False
    for name, value in variables:
        if value is None and name not in os.environ:
            raise CliError(
                f"--env {name}: that environment variable is not set; set it, or write"
                f" --env {name}=VALUE"
            )
        if value is None and shared:
            forwarded.append(name)
            continue
        taken = taken or value is None
        values[name] = os.environ[name] if value is None else value
    for text in values.values():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CliError("a value of --env is not UTF-8, as configuration files are") from None
    return values, taken, tuple(dict.fromkeys(forwarded))
