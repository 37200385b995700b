"""Documented examples of each format, read, and written back by the editors byte for byte."""

from __future__ import annotations

import pytest

from mcp_core.host import CLIENT_FORMATS, format_to_edit, read_config
from mcp_core.host.edit._json_edit import read_json, set_member
from mcp_core.host.edit._toml_edit import read_toml, set_toml_members
from tests.core.host.config.examples import EXAMPLES, Example
from tests.core.host.config.readings import (
    FileToRead,
    files_to_read,
    kept_readings,
    reading_of,
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.source)
def test_read_config_documented_example_has_its_servers(example: Example) -> None:
    found = read_config(example.text.encode(), file=example.file)
    assert found.format == example.format
    assert len(found.problems) == len(example.problems)
    for problem, start in zip(found.problems, example.problems, strict=True):
        assert str(problem).startswith(start)
    assert bool(found.broken) == bool(example.problems)
    assert found.has_servers
    assert found.servers.keys() == example.servers.keys()
    for name, fields in example.servers.items():
        server = found.servers[name]
        assert {field: getattr(server, field) for field in fields} == fields
        if "extra" not in fields:
            assert server.extra == {}


READ = files_to_read()
KEPT = kept_readings()


@pytest.mark.parametrize("read", READ, ids=lambda read: read.name)
def test_read_config_reads_what_is_kept(read: FileToRead) -> None:
    """`python -m tests.core.host.config.readings` writes it again."""
    assert reading_of(read) == KEPT[read.name]


def test_kept_readings_are_those_of_all_tables() -> None:
    assert list(KEPT) == [each.name for each in READ]


WRITTEN = [example for example in EXAMPLES if not example.file.endswith(".yaml")]


@pytest.mark.parametrize("example", WRITTEN, ids=lambda example: example.source)
def test_editors_set_the_same_entry_and_keep_every_byte(example: Example) -> None:
    client = format_to_edit(read_config(example.text, file=example.file))
    for name in example.servers:
        if client.syntax is None:
            entry = read_toml(example.text)[client.servers[0]][name]
            text = set_toml_members(example.text, (*client.servers, name), entry)
        else:
            entry = read_json(example.text, client.syntax)
            for part in (*client.servers, name):
                entry = entry[part]
            text = set_member(example.text, (*client.servers, name), entry, client.syntax)
        assert text == example.text


def test_each_format_has_three_examples() -> None:
    counts = {name: sum(each.format == name for each in EXAMPLES) for name in CLIENT_FORMATS}
    assert min(counts[name] for name, each in CLIENT_FORMATS.items() if each.is_written) >= 3
    assert min(counts.values()) >= 1
