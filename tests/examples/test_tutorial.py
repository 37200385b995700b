"""The pages of the tutorial, played as a reader plays them: see `walkthrough.py`."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest

from tests.examples.pages import TUTORIAL, read
from tests.examples.walkthrough import Output, play, write_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", TUTORIAL)
def test_tutorial_page_prints_what_it_shows(page: str, folder: Path) -> None:
    for earlier in TUTORIAL[: TUTORIAL.index(page)]:
        write_files(earlier, folder)
    outputs = list(play(page, folder))
    for output in outputs:
        output.check()
    assert len(outputs) >= 3


@pytest.mark.parametrize("page", TUTORIAL)
def test_tutorial_page_ends_with_summary_and_next_page(page: str) -> None:
    text = read(page)
    assert 100 <= text.count("\n") <= 235
    _, summary, rest = text.partition("\n## What you have learned\n")
    assert summary
    *_, last = rest.rstrip().split("\n\n")
    following = TUTORIAL[TUTORIAL.index(page) + 1 :]
    if following:
        assert following[0].removeprefix("docs/tutorial/") in last
    assert re.match(r"# \d\. ", text)


def played(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Output]:
    monkeypatch.setattr("tests.examples.pages.read", lambda page: text)
    return list(play("page.md", folder))


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one >&2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```console\n(server)$ echo one\ntwo\n```\n",
    ],
    ids=["stdout", "stderr", "program", "text", "server"],
)
def test_walkthrough_with_another_output_fails(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [output] = played(text, folder, monkeypatch)
    with pytest.raises(AssertionError):
        output.check()


def test_walkthrough_changes_files_as_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page gives a file whole, or a part of it: a function, the top or the end."""
    text = """
```python
# a.py
x = 1

@str
def f():
    pass
y = 3
```

```python
# a.py, instead of f
def f():
    return x
```

```python
# a.py, at the top
import os
```

```python
# a.py, at the end
print(f())
```

```console
$ python a.py
1
$ false
$ echo $?
1
```
"""
    outputs = played(text, folder, monkeypatch)
    for output in outputs:
        output.check()
    assert len(outputs) == 3
    assert (folder / "a.py").read_text() == (
        "import os\n# a.py\nx = 1\n\ndef f():\n    return x\ny = 3\n\n\nprint(f())\n"
    )


def test_walkthrough_server_is_stopped_by_interrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block starts the server; a later one shows the Ctrl+C and what is printed then."""
    text = """
```python
# a.py
import time
print("one", flush=True)
try:
    time.sleep(30)
except KeyboardInterrupt:
    print("two")
```

```console
(server)$ python a.py
one
```

```console
^C
two
```
"""
    for output in played(text, folder, monkeypatch):
        output.check()


def test_walkthrough_shell_keeps_directory_and_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers keep one terminal open, so an earlier `cd` also decides where files are saved."""
    text = """
```console
$ mkdir inner
$ cd inner && x=1
```

```python
# a.py
print("one")
```

```console
$ echo $x; python a.py
1
one
```
"""
    for output in played(text, folder, monkeypatch):
        output.check()
    assert (folder / "inner" / "a.py").exists()


def test_walkthrough_types_answers_at_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program prompts only at a terminal, and the page shows the answer beside the prompt."""
    text = """
```python
# a.py
import sys
print(input("sure? (yes or no): "), sys.stdin.isatty())
```

```console
$ python a.py
sure? (yes or no): maybe
maybe True
```
"""
    for output in played(text, folder, monkeypatch):
        output.check()


def test_walkthrough_session_of_page_stands_for_that_of_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are random: where this run prints `a-b`, the page's `one` is expected."""
    text = """
```console
$ printf 'mcp-session-id: %s-b\nx' a
mcp-session-id: one
x
$ echo one
one
$ echo a-b
a-b
```
"""
    *outputs, other = played(text, folder, monkeypatch)
    for output in outputs:
        output.check()
    with pytest.raises(AssertionError):
        other.check()


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("sh\necho one", "sh that no rule plays"),
        ("text\none", "text that no rule plays"),
        ("console\n$ pip install no-such-package-of-ours", "no-such-package-of-ours"),
        ("console\n$ pip install . && echo one", "echo one"),
        ("console\n$ exit 3", "no end of: exit 3"),
    ],
)
def test_walkthrough_block_that_cannot_be_played_fails(
    block: str, reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((AssertionError, PackageNotFoundError), match=reason):
        played(f"```{block}\n```\n", folder, monkeypatch)
