"""mcp-server-git 2026.10: 12 tools for a repository, on the low-level server of the official SDK.

Lines that had to change:

1. A model for each tool, and `call_tool` with its `match`, are a function for each tool with the
   model's fields as parameters. `arguments.get("context_lines", 3)` is the parameter's default.
2. `async def call_tool`, which blocks while git runs, is a plain `def` for each tool, and
   `Server(NAME, threads=True)` runs them in worker threads.
3. An exception of git is a `ToolError`: the text of another exception isn't sent.

`Optional[str] = Field(None, description=...)` and `Field(..., description=...)` as defaults, and
the enum of texts as `name=`, stay. The library GitPython is the program git here.
"""

# ruff: noqa: UP045 - `Optional` is what that server has

import subprocess
from enum import Enum
from typing import Optional

from pydantic import Field

from mcp_core import ToolError
from mcp_core.registry import Server

__all__ = ["make_server"]

CONTEXT_LINES = 3


class GitTools(str, Enum):  # noqa: UP042 - as there
    STATUS = "git_status"
    DIFF_UNSTAGED = "git_diff_unstaged"
    DIFF_STAGED = "git_diff_staged"
    DIFF = "git_diff"
    COMMIT = "git_commit"
    ADD = "git_add"
    RESET = "git_reset"
    LOG = "git_log"
    CREATE_BRANCH = "git_create_branch"
    CHECKOUT = "git_checkout"
    SHOW = "git_show"
    BRANCH = "git_branch"


def git(repo_path: str, *words: str) -> str:
    """Run git and return its output."""
    done = subprocess.run(
        ["git", "-C", repo_path, *words],
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise ToolError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def plain(text: str) -> str:
    """Return the name of a commit or a branch, which git must not read as an option."""
    if text.startswith("-"):
        raise ToolError(f"{text!r} isn't a revision")
    return text


def make_server() -> Server:
    """Return the server."""
    server = Server("mcp-git", threads=True)
    _declare_changes(server)
    _declare_history(server)
    return server


def _declare_changes(server: Server) -> None:
    @server.tool(name=GitTools.STATUS)
    def git_status(repo_path: str) -> str:
        """Show what has changed."""
        return f"Repository status:\n{git(repo_path, 'status')}"

    @server.tool(name=GitTools.DIFF_UNSTAGED)
    def git_diff_unstaged(repo_path: str, context_lines: int = CONTEXT_LINES) -> str:
        """Show changes that aren't staged."""
        return f"Unstaged changes:\n{git(repo_path, 'diff', f'--unified={context_lines}')}"

    @server.tool(name=GitTools.DIFF_STAGED)
    def git_diff_staged(repo_path: str, context_lines: int = CONTEXT_LINES) -> str:
        """Show changes that are staged."""
        words = "diff", f"--unified={context_lines}", "--cached"
        return f"Staged changes:\n{git(repo_path, *words)}"

    @server.tool(name=GitTools.DIFF)
    def git_diff(repo_path: str, target: str, context_lines: int = CONTEXT_LINES) -> str:
        """Show differences to a branch or a commit."""
        words = "diff", f"--unified={context_lines}", plain(target)
        return f"Diff with {target}:\n{git(repo_path, *words)}"

    @server.tool(name=GitTools.COMMIT)
    def git_commit(repo_path: str, message: str) -> str:
        """Commit what is staged."""
        git(repo_path, "commit", "-m", message)
        return f"Committed as {git(repo_path, 'rev-parse', 'HEAD')}"

    @server.tool(name=GitTools.ADD)
    def git_add(repo_path: str, files: list[str]) -> str:
        """Stage files."""
        git(repo_path, "add", "--", *files)
        return "Files are staged"

    @server.tool(name=GitTools.RESET)
    def git_reset(repo_path: str) -> str:
        """Unstage all changes."""
        git(repo_path, "reset")
        return "Nothing is staged"


def _declare_history(server: Server) -> None:
    @server.tool(name=GitTools.LOG)
    def git_log(
        repo_path: str,
        max_count: int = 10,
        start_timestamp: Optional[str] = Field(None, description="the time of the oldest commit"),
        end_timestamp: Optional[str] = Field(None, description="the time of the newest commit"),
    ) -> str:
        """Show commits, newest first."""
        words = [f"--max-count={max_count}"]
        words += [f"--since={start_timestamp}"] if start_timestamp else []
        words += [f"--until={end_timestamp}"] if end_timestamp else []
        return f"Commit history:\n{git(repo_path, 'log', *words)}"

    @server.tool(name=GitTools.CREATE_BRANCH)
    def git_create_branch(repo_path: str, branch_name: str, base_branch: str | None = None) -> str:
        """Create a branch from another one, or from the current one."""
        git(repo_path, "branch", plain(branch_name), plain(base_branch or "HEAD"))
        return f"Created the branch {branch_name}"

    @server.tool(name=GitTools.CHECKOUT)
    def git_checkout(repo_path: str, branch_name: str) -> str:
        """Switch to a branch."""
        git(repo_path, "checkout", plain(branch_name))
        return f"Switched to {branch_name}"

    @server.tool(name=GitTools.SHOW)
    def git_show(repo_path: str, revision: str) -> str:
        """Show a commit."""
        return git(repo_path, "show", plain(revision))

    @server.tool(name=GitTools.BRANCH)
    def git_branch(
        repo_path: str = Field(..., description="the repository's directory"),
        branch_type: str = Field(..., description="local, remote or all"),
        contains: Optional[str] = Field(None, description="a commit that is in the branches"),
        not_contains: Optional[str] = Field(None, description="a commit that isn't in them"),
    ) -> str:
        """List branches."""
        kinds = {"local": [], "remote": ["-r"], "all": ["-a"]}
        if branch_type not in kinds:
            raise ToolError(f"there are no branches of the type {branch_type!r}")
        words = kinds[branch_type]
        words += ["--contains", plain(contains)] if contains else []
        words += ["--no-contains", plain(not_contains)] if not_contains else []
        return git(repo_path, "branch", *words)
