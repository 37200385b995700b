"""Merged names: what fits, what is shortened, collisions, and the way back from each name."""

from __future__ import annotations

import hashlib
import re
import time
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    MAX_NAME_LENGTH,
    NameCollision,
    NameTable,
    QualifiedName,
    ResourceTable,
    fit_name,
    merged_name,
    merged_prefix,
    plain_name,
    read_resource_label,
    resource_label,
)
from tests.levels import fewer_examples

FITTING = re.compile(r"[a-zA-Z0-9_-]{1,64}")
URI = "file:///notes?q=1#a"
# Names as a careless or hostile server may choose them.
ODD_NAMES = [
    "",
    "a.b/c",
    "x" * 200,
    "x" * 199 + "y",
    "g\u0456thub",  # a Cyrillic letter
    "github",
    "\u200bgithub",
    "名前",
    "\ud800",
    "*",
    "-",
    "a\nb",
    "\x1b[2J",
]
texts = st.text(st.characters(), max_size=80) | st.sampled_from(ODD_NAMES)
servers = st.dictionaries(texts, st.lists(texts, max_size=5), max_size=5)


def table_of(servers: dict[str, list[str]]) -> NameTable:
    table = NameTable()
    for server, names in servers.items():
        table.set_server(server, names)
    return table


def resources(**servers: list[str]) -> ResourceTable:
    table = ResourceTable()
    for server, uris in servers.items():
        table.set_server(server, uris)
    return table


def test_name_that_fits_is_not_changed() -> None:
    table = table_of({"github": ["create_issue"]})
    assert table.merged("github", "create_issue") == "mcp__github__create_issue"
    assert table.find("mcp__github__create_issue") == ("github", "create_issue")
    assert table.find("mcp__github__create") is None
    assert fit_name("a" * 64) == "a" * 64


@pytest.mark.parametrize("name", ["a" * 65, "fs.read/all", "naïve", "", "a\n"])
def test_name_that_does_not_fit_ends_in_its_digest(name: str) -> None:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    beginning = re.sub(r"[^a-zA-Z0-9_-]", "_", name[:55])
    assert fit_name(name) == f"{beginning}_{digest}"


def test_names_that_look_alike_stay_apart() -> None:
    table = table_of(dict.fromkeys(ODD_NAMES, ODD_NAMES))
    assert len(dict(table)) == len(table) == len(ODD_NAMES) ** 2
    assert table.collisions() == []


def test_collision_names_both_and_leads_to_neither() -> None:
    """Calling either could run the wrong tool; removing one server ends the ambiguity."""
    table = table_of({"a__b": ["c"], "a": ["b__c", "d"]})
    both = (QualifiedName("a", "b__c"), QualifiedName("a__b", "c"))
    for call in (
        lambda: table.find("mcp__a__b__c"),
        lambda: table.merged("a", "b__c"),
        lambda: table.merged("a__b", "c"),
    ):
        with pytest.raises(NameCollision, match=r"b__c of a and of c of a__b: ") as caught:
            call()
        assert caught.value.names == both
    assert [each.names for each in table.collisions()] == [both]
    assert list(table) == [("mcp__a__d", ("a", "d"))]
    table.discard_server("a__b")
    assert table.find("mcp__a__b__c") == ("a", "b__c")
    assert table.collisions() == []


def test_collision_error_escapes_and_shortens_names() -> None:
    table = NameTable(plain_name)
    for server in ("\x1b[2J" + "s" * 200, "b", "c"):
        table.set_server(server, ["t\u202e"])
    [collision] = table.collisions()
    text = str(collision)
    assert text.isascii() is False  # the ellipsis of what is cut
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "and 1 more" in text
    assert len(text) < 400


def test_scheme_of_ones_own_is_shortened_too() -> None:
    table = NameTable(lambda server, name: f"{server}.{name}")
    table.set_server("s", ["t"])
    merged = table.merged("s", "t")
    assert re.fullmatch(r"s_t_[0-9a-f]{8}", merged)
    assert table.find(merged) == ("s", "t")


def test_name_that_server_lists_twice_is_no_collision() -> None:
    table = table_of({"s": ["t", "t"]})
    assert table.find("mcp__s__t") == ("s", "t")
    assert len(table) == 1


def test_server_with_new_list_loses_its_old_names() -> None:
    table = table_of({"s": ["t", "u"]})
    table.set_server("s", ["u", "v"])
    assert table.find("mcp__s__t") is None
    assert sorted(dict(table)) == ["mcp__s__u", "mcp__s__v"]
    with pytest.raises(KeyError):
        table.merged("s", "t")
    table.discard_server("s")
    table.discard_server("s")
    assert len(table) == 0


def test_server_whose_scheme_fails_keeps_its_old_names() -> None:
    table = NameTable(lambda server, name: {"t": server}[name])
    table.set_server("s", ["t"])
    with pytest.raises(KeyError):
        table.set_server("s", ["u"])
    assert table.find("s") == ("s", "t")


@fewer_examples(2)
@given(servers)
def test_names_all_fit_and_lead_back(servers: dict[str, list[str]]) -> None:
    table = table_of(servers)
    collided = {name for each in table.collisions() for name in each.names}
    for server, names in servers.items():
        for name in set(names):
            if (server, name) in collided:
                continue
            merged = table.merged(server, name)
            assert FITTING.fullmatch(merged)
            assert len(merged) <= MAX_NAME_LENGTH
            assert table.find(merged) == (server, name)
    assert len(dict(table)) + len(collided) == len(table)


@given(
    st.dictionaries(st.sampled_from(["a", "a__b", "c"]), st.lists(st.sampled_from(["b__t", "t"])))
)
def test_names_do_not_depend_on_order(servers: dict[str, list[str]]) -> None:
    expected = table_of(servers)
    for order in permutations(servers):
        table = table_of({server: servers[server][::-1] for server in order})
        table.set_server(order[0] if order else "a", [])  # a reconnect
        for server in order[:1]:
            table.set_server(server, servers[server])
        assert dict(table) == dict(expected)
        assert list(map(str, table.collisions())) == list(map(str, expected.collisions()))


@pytest.mark.perf
def test_table_of_many_tools_is_built_in_linear_time() -> None:
    names = [f"tool_{number}" for number in range(100)]
    before = time.process_time()
    table = table_of({f"server_{number}": names for number in range(100)})
    assert len(dict(table)) == 10_000
    # 25 ms here; a quadratic table would take minutes.
    assert time.process_time() - before < 2


# -- Resources -------------------------------------------------------------------------------------


def test_uri_of_one_server_stays_as_it_is() -> None:
    table = resources(a=[URI], b=["file:///other"])
    assert table.wire_uri("a", URI) == URI
    assert table.find(URI) == ("a", URI)
    assert table.find("file:///unknown") is None


def test_uri_in_another_spelling_leads_to_the_only_resource_with_its_normal_form() -> None:
    table = resources(a=["note://café"], b=["http://h"])
    assert table.find("note://caf%C3%A9") == ("a", "note://café")
    assert table.find("HTTP://h:80/") == ("b", "http://h")
    assert table.find("note://x/../café") is None
    table.set_server("b", ["note://caf%C3%A9"])
    assert table.find("http://h") is None
    assert table.find("note://caf%C3%A9") == ("b", "note://caf%C3%A9")
    assert table.find("NOTE://café") is None  # it may be either
    table.discard_server("b")
    assert table.find("NOTE://café") == ("a", "note://café")


def test_uri_of_two_servers_names_its_server() -> None:
    table = resources(a=[URI], b=[URI])
    wire = table.wire_uri("b", URI)
    assert wire == "mcp-gateway://b/file%3A%2F%2F%2Fnotes%3Fq%3D1%23a"
    assert table.find(wire) == ("b", URI)
    with pytest.raises(NameCollision) as caught:
        table.find(URI)
    assert caught.value.names == (("a", URI), ("b", URI))
    assert str(caught.value).endswith(f": name the server, as in @a:{URI}")
    table.discard_server("a")
    assert table.wire_uri("b", URI) == URI
    assert table.find(wire) == ("b", URI)  # a client may have kept it


def test_link_to_resource_of_another_server_names_the_server_of_the_link() -> None:
    table = resources(a=[URI], b=[])
    assert table.wire_uri("b", URI).startswith("mcp-gateway://b/")
    assert table.wire_uri("b", "file:///unlisted").startswith("mcp-gateway://b/")


@pytest.mark.parametrize(
    "uri", ["mcp-gateway://a/secret", "MCP-Gateway://a/secret", "mcp-gateway:"]
)
def test_uri_of_server_that_imitates_ours_leads_to_that_server(uri: str) -> None:
    table = resources(a=["secret"], b=[uri])
    wire = table.wire_uri("b", uri)
    assert wire.startswith("mcp-gateway://b/")
    assert table.find(wire) == ("b", uri)
    assert table.find(uri) != ("b", uri)


def test_uri_of_server_that_imitates_a_label_leads_to_that_server() -> None:
    uri = "@a:secret"
    table = resources(a=["secret"], b=[uri])
    wire = table.wire_uri("b", uri)
    assert wire == "mcp-gateway://b/%40a%3Asecret"
    assert table.find(wire) == ("b", uri)


@pytest.mark.parametrize(
    "wire", ["mcp-gateway:a/b", "mcp-gateway://", "mcp-gateway:///x", "mcp-gateway://a/%ff"]
)
def test_gateway_uri_that_is_malformed_leads_nowhere(wire: str) -> None:
    assert resources(a=[wire]).find(wire) is None


@fewer_examples(2)
@given(st.text(st.characters(), min_size=1), st.text(st.characters()))
def test_gateway_uri_leads_back(server: str, uri: str) -> None:
    table = resources(**{server: [uri], server + "2": [uri]})
    wire = table.wire_uri(server, uri)
    assert re.fullmatch(r"mcp-gateway://[\w.~%-]+/[\w.~%-]*", wire, re.ASCII)
    assert table.find(wire) == (server, uri)


@given(st.text(min_size=1), st.text())
def test_label_leads_back(server: str, uri: str) -> None:
    assert read_resource_label(resource_label(server, uri)) == (server, uri)


def test_label_is_readable() -> None:
    assert resource_label("Café", URI) == f"@Café:{URI}"
    assert resource_label("my server:1", "a:b") == "@my%20server%3A1:a:b"


@pytest.mark.parametrize("label", ["", "@", "a:b", "@a", "@:b", "@a b:c"])
def test_label_that_is_malformed_is_refused(label: str) -> None:
    assert read_resource_label(label) is None


@given(st.text(), st.text())
def test_merged_prefix_begins_each_merged_name_of_the_server(server: str, name: str) -> None:
    assert fit_name(merged_name(server, name)).startswith(merged_prefix(server))


def test_merged_prefix_of_a_plain_name_is_readable() -> None:
    assert merged_prefix("git") == "mcp__git__"
    assert merged_prefix("a.b") == "mcp__a_b__"
    assert len(merged_prefix("n" * 200)) == 55
