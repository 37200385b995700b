"""Each tool of the ported mcp-server-git is called on both drivers, with the program git."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import either
from tests.ported import git_server

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.usefixtures("each_driver"),
    pytest.mark.skipif(shutil.which("git") is None, reason="needs the program git"),
]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit of a file, and a configuration of its own."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "none"))
    (tmp_path / "config").write_text(
        "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n"
    )
    path = tmp_path / "repository"
    path.mkdir()
    (path / "tea").write_text("green\n")
    for words in ["init"], ["add", "tea"], ["commit", "-m", "First"]:
        subprocess.run(["git", "-C", path, *words], check=True, capture_output=True)
    return path


async def test_tools_of_the_git_server(repository: Path) -> None:
    """A change is staged, unstaged, committed, and found again in branches and the log."""

    async def call(tool: str, **arguments: Any) -> str:
        result = await client.call_tool(f"git_{tool}", {"repo_path": str(repository), **arguments})
        assert not result.is_error, result.text
        return str(result.text)

    async with either.connect(git_server.make_server()) as client:
        (repository / "tea").write_text("green\nblack\n")
        assert "modified:   tea" in await call("status")
        assert "+black" in await call("diff_unstaged", context_lines=0)
        await call("add", files=["tea"])
        assert "+black" in await call("diff_staged")
        await call("reset")
        assert "+black" not in await call("diff_staged")
        assert "+black" in await call("diff", target="HEAD")
        await call("add", files=["."])
        await call("commit", message="Second")
        (repository / "cake").write_text("fresh\n")
        await call("add", files=["cake"])
        await call("commit", message="Third")
        assert "Third" in await call("show", revision="HEAD")
        log = await call("log", max_count=2)
        assert "Third" in log
        assert "First" not in log
        assert "First" not in await call("log", end_timestamp="2000-01-01")
        await call("create_branch", branch_name="old", base_branch="HEAD~1")
        await call("checkout", branch_name="old")
        assert "* old" in await call("branch", branch_type="local")
        assert "old" not in await call("branch", branch_type="all", contains="main")
        assert await call("branch", branch_type="remote", not_contains="main") == ""


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("git_show", {"revision": "--output=x"}, "'--output=x' isn't a revision"),
        ("git_show", {"revision": "none"}, "git show: fatal: "),
        ("git_branch", {"branch_type": "some"}, "no branches of the type 'some'"),
        ("git_branch", {}, "Missing argument `branch_type`"),
        ("git_add", {"files": "tea"}, "Invalid argument `files`: expected `array`, got `str`"),
        ("git_log", {"max_count": None}, "`max_count`: expected `int`, got `null`"),
    ],
)
async def test_tool_of_the_git_server_says_what_is_wrong(
    repository: Path, tool: str, arguments: dict[str, Any], text: str
) -> None:
    async with either.connect(git_server.make_server()) as client:
        result = await client.call_tool(tool, {"repo_path": str(repository), **arguments})
    assert result.is_error
    assert text in result.text
