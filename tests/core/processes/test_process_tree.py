"""Finding the processes of a child, in a `/proc` that is a dict."""

from __future__ import annotations

import pytest

from mcp_core.processes._process_tree import ProcessTree

LEADER = 100


class Processes:
    """A `/proc` with entries for processes; `read` raises `OSError` for all others."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"self/stat": b"", "uptime": b""}
        self.reads: list[str] = []
        self.add(1, 0, started=0)
        self.add(LEADER, 50, started=1000, marks="m")

    def add(
        self,
        pid: int,
        parent: int,
        *,
        marks: str | None = None,
        group: int | None = None,
        started: int = 2000,
        state: str = "S",
        name: str = "sh",
    ) -> None:
        rest = " ".join(str(number) for number in range(7, 22))
        self.files[f"{pid}/stat"] = (
            f"{pid} ({name}) {state} {parent} {group or pid} {pid} {rest} {started} 0 0\n".encode()
        )
        if marks is not None:
            self.files[f"{pid}/environ"] = f"PATH=/bin\0MCP_TRIO_CHILD={marks}\0".encode()

    def remove(self, pid: int) -> None:
        self.files = {
            path: data for path, data in self.files.items() if not path.startswith(f"{pid}/")
        }

    def names(self) -> list[str]:
        return list(dict.fromkeys(path.split("/")[0] for path in self.files))

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def tree(self) -> ProcessTree:
        return ProcessTree(LEADER, "m", self.names, self.read)


@pytest.fixture
def proc() -> Processes:
    return Processes()


def test_process_tree_without_descendants_is_empty(proc: Processes) -> None:
    proc.add(101, 50, marks="other")
    tree = proc.tree()
    assert tree.find(leader_exists=True) == []
    assert repr(tree) == "<ProcessTree of 100, 0 found>"


def test_process_tree_without_proc_is_empty(proc: Processes) -> None:
    tree = ProcessTree(LEADER, "m", list, proc.read)
    assert tree.find(leader_exists=True) == []


@pytest.mark.parametrize("marks", ["m", "outer:m", "m:inner"])
def test_process_tree_finds_orphan_by_its_mark(proc: Processes, marks: str) -> None:
    proc.add(101, 1, marks=marks)
    assert proc.tree().find(leader_exists=False) == [101]


def test_process_tree_finds_descendants_without_marks(proc: Processes) -> None:
    proc.add(101, LEADER)
    proc.add(102, 101)
    proc.add(103, 1, marks="m")
    proc.add(104, 103)
    proc.add(105, 1)
    assert sorted(proc.tree().find(leader_exists=True)) == [101, 102, 103, 104]
    assert sorted(proc.tree().find(leader_exists=False)) == [103, 104]


def test_process_tree_found_once_is_found_again(proc: Processes) -> None:
    """Its parent has exited since, and it has no mark."""
    proc.add(101, LEADER)
    tree = proc.tree()
    assert tree.find(leader_exists=True) == [101]
    proc.add(101, 1)
    proc.remove(LEADER)
    assert tree.find(leader_exists=False) == [101]
    proc.add(101, 1, started=3000)  # another process with the same id
    assert tree.find(leader_exists=False) == []


def test_process_tree_leader_id_used_again_is_not_followed(proc: Processes) -> None:
    tree = proc.tree()
    proc.add(LEADER, 1, started=3000)
    proc.add(101, LEADER, started=3000)
    assert tree.find(leader_exists=False) == []


def test_process_tree_leaves_out_dead_processes_and_the_group(proc: Processes) -> None:
    proc.add(101, LEADER, state="Z", marks="m")
    proc.add(102, LEADER, group=LEADER, marks="m")
    proc.add(103, 102, marks="m")
    assert sorted(proc.tree().find(leader_exists=True)) == [102, 103]
    assert proc.tree().find(leader_exists=True, in_group=False) == [103]


def test_process_tree_reads_strange_names_of_programs(proc: Processes) -> None:
    proc.add(101, LEADER, name="a) Z 1 (b")
    assert proc.tree().find(leader_exists=True) == [101]


def test_process_tree_reads_no_environment_of_older_processes(proc: Processes) -> None:
    proc.add(60, 1, started=999, marks="m")
    proc.add(101, LEADER, started=1000)
    assert proc.tree().find(leader_exists=True) == [101]
    assert "60/environ" not in proc.reads
    assert "101/environ" in proc.reads


def test_process_tree_without_leader_reads_all(proc: Processes) -> None:
    proc.remove(LEADER)
    proc.add(60, 1, started=1, marks="m")
    assert proc.tree().find(leader_exists=False) == [60]


def test_process_tree_finds_process_that_starts_during_the_search(proc: Processes) -> None:
    proc.add(101, LEADER)
    tree = proc.tree()

    def read(path: str) -> bytes:
        if path == "101/environ":
            proc.add(102, 1, marks="m")
        return proc.read(path)

    tree._read = read
    assert sorted(tree.find(leader_exists=True)) == [101, 102]


def test_process_tree_search_ends_although_processes_keep_starting(proc: Processes) -> None:
    tree = proc.tree()

    def names() -> list[str]:
        proc.add(1000 + len(proc.reads), 1, marks="m")
        return proc.names()

    tree._list_names = names
    assert len(tree.find(leader_exists=True)) == 5
