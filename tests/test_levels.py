"""`tests.levels`: which files `.ci/run` collects for a step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import _check_found
from tests.levels import LONGEST_FILES, TESTS, files_with, marks_named_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("@pytest.mark.perf\ndef test_it(): ...", {"perf"}),
        ("pytestmark = [pytest.mark.node, mark.slow]", {"node", "slow"}),
        ("ROWS = [1, long(2)]", {"long"}),
        ("from tests.trio_.cancelling import STEPS", {"long", "slow"}),
        ("from tests.levels import fewer_examples", set()),
        ("import tests\n\nprolong(1)", set()),
    ],
)
def test_marks_of_a_file_and_of_what_it_imports_are_found(
    text: str, marks: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(text)
    assert marks_named_in(file) & {"long", "node", "perf", "slow"} == marks


def test_files_are_found_by_mark_and_by_place() -> None:
    files = {str(file.relative_to(TESTS)) for file in files_with({"process", "interop"})}
    assert {"trio_/cli/use/test_call.py", "interop/test_host.py", "test_repeat.py"} <= files
    assert "core/protocol/jsonrpc/test_codec.py" not in files


def test_longest_files_come_first_and_once() -> None:
    files = files_with({"process", "interop", "node", "conformance"})
    assert files[: len(LONGEST_FILES)] == LONGEST_FILES
    assert len(files) == len(set(files))


@pytest.mark.parametrize("name", ["long", "perf", "process", "interop", "node", "conformance"])
def test_test_that_no_step_would_find_is_refused(name: str) -> None:
    path = TESTS / "core" / "protocol" / "jsonrpc" / "test_codec.py"
    item: Any = SimpleNamespace(path=path, nodeid="test_it")
    with pytest.raises(pytest.UsageError, match="test_it has one of the marks"):
        _check_found(item, {"timeout", name})
    _check_found(item, {"timeout", "slow"})
