"""Rules for child processes that drivers start: environment, process tree, command line, reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._child_environment import child_environment as child_environment
    from ._child_environment import withheld_text as withheld_text
    from ._command_line import split_command_line as split_command_line
    from ._command_words import command_hint as command_hint
    from ._command_words import list_form as list_form
    from ._command_words import member_form as member_form
    from ._command_words import program_text as program_text
    from ._command_words import start_problem as start_problem
    from ._command_words import target_text as target_text
    from ._command_words import wrong_target as wrong_target
    from ._error_line import find_error_line as find_error_line
    from ._exit_text import exit_text as exit_text
    from ._exit_text import with_exit_text as with_exit_text
    from ._process_tree import ProcessTree as ProcessTree
    from ._reload import ReloadRelay as ReloadRelay
    from ._windows_command import UnsafeArgument as UnsafeArgument
    from ._windows_command import windows_command as windows_command

__all__ = [
    "ProcessTree",
    "ReloadRelay",
    "UnsafeArgument",
    "child_environment",
    "command_hint",
    "exit_text",
    "find_error_line",
    "list_form",
    "member_form",
    "program_text",
    "split_command_line",
    "start_problem",
    "target_text",
    "windows_command",
    "with_exit_text",
    "withheld_text",
    "wrong_target",
]

_MODULES = {
    "._child_environment": ("child_environment", "withheld_text"),
    "._command_line": ("split_command_line",),
    "._command_words": (
        "command_hint",
        "list_form",
        "member_form",
        "program_text",
        "start_problem",
        "target_text",
        "wrong_target",
    ),
    "._error_line": ("find_error_line",),
    "._exit_text": ("exit_text", "with_exit_text"),
    "._process_tree": ("ProcessTree",),
    "._reload": ("ReloadRelay",),
    "._windows_command": ("UnsafeArgument", "windows_command"),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
