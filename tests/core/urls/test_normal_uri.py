"""The normal form of URIs: what is the same resource, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.urls import UriMatcher, UriTemplate
from mcp_core.urls._normal_uri import UriSpellings, normal_template, normal_uri

# RFC 3986, 3.3: what stays in a path as it is.
TEXTS = st.text("aZ09-._~%/é☃ \\:@!?#[]\x00\ud800" + "%41%2f%C3", max_size=16)


@pytest.mark.parametrize(
    ("normal", "spellings"),
    [
        # The bytes of the report: a client on the official Python SDK 1.x, and the list.
        ("note://caf%C3%A9/", ["note://caf%C3%A9", "note://café", "note://caf%c3%a9/"]),
        ("note://a/b~c", ["note://a/b%7Ec", "note://a/b%7ec", "NOTE://A/b~c"]),
        ("note://a/%2F", ["note://a/%2f"]),
        ("note://a/%5B1%5D", ["note://a/[1]", "note://a/%5b1%5d"]),
        ("note://a/b%20c", ["note://a/b c"]),
        ("http://a.b/", ["http://A.b", "http://a.b:80", "http://a.b:", "HTTP://a.b:80/"]),
        ("https://a.b/?q=%C3%A9#%C3%BC", ["https://a.b:443?q=é#ü"]),
        ("http://a.b:443/", ["http://a.b:443"]),
        ("http://[::1]/", ["http://[::1]:80", "http://[::1]"]),
        ("http://[::1]:8080/x", ["HTTP://[::1]:8080/x"]),
        # No IP literal: these characters are encoded, as elsewhere.
        ("http://%5B%C3%A9/", ["http://[é", "http://%5b%c3%a9:80"]),
        ("http://%5B%C3%A9%5D/", ["http://[é]"]),
        ("http://a.b/", ["http://%41.b", "http://%61.%42"]),
        ("http://%3A/", ["http://::", "http://::80"]),
        ("http://a%3A1:2/", ["http://a:1:2"]),
        ("http://u%3A@h/", ["http://u%3a@H:80"]),
        ("file:///a/b", ["FILE:///a/b", "file:///%61/b"]),
        ("urn:x:Y", ["URN:x:Y", "urn:%78:Y"]),
        ("x:y..z/.w", ["x:y%2e.z/%2Ew"]),
    ],
)
def test_spellings_of_one_resource_have_one_normal_form(normal: str, spellings: list[str]) -> None:
    assert [normal_uri(each) for each in [normal, *spellings]] == [normal] * (1 + len(spellings))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("note://a/b", "note://a/B"),
        ("note://a/b", "note://a/b/"),
        ("note://a/b", "note://a//b"),
        ("note://a/%2F", "note://a//"),
        ("note://a/b", "note://a/./b"),
        ("note://a/b?", "note://a/b"),
        ("note://a/b#", "note://a/b"),
        ("note:a", "note:/a"),
        ("note:a", "note://a"),
        ("urn:x:Y", "urn:X:Y"),
        ("http://h:80/", "https://h:80/"),
        ("note://É/", "note://é/"),  # RFC 3986, 6.2.2.1: only ASCII has one lower case
        ("note://e\u0301/", "note://é/"),
    ],
)
def test_different_resources_keep_different_normal_forms(one: str, other: str) -> None:
    assert normal_uri(one) is not None
    assert normal_uri(one) != normal_uri(other)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "a/b",
        "//a/b",
        "1:x",
        "note://a/%",
        "note://a/%4",
        "note://a/%zz",
        "note://%/",
        "note://a/\ud800",
        "note://a/\x00",
        "note://..",
        "note://%2e./x",
        "note://a/..",
        "note://a/../b",
        "note://a/%2e%2E/b",
        "note://a/.%2e/b",
        "note://a/b%5c..",
        "note://a/b\\..\\c",
        "note://a/b%2F..%2fc",
        "note:..",
        "note:../a",
        pytest.param(f"note://a/{'%41' * 3_000}", id="longer than 8 KiB"),
    ],
)
def test_uri_that_is_malformed_or_leaves_its_directory_has_no_normal_form(uri: str) -> None:
    assert normal_uri(uri) is None
    assert UriSpellings([uri]).find_all(uri) == []


@given(TEXTS)
@example("[é")
@example("::")
def test_normal_form_is_its_own_and_ascii(text: str) -> None:
    for uri in (text, f"note://{text}", f"Http://H:80/{text}"):
        normal = normal_uri(uri)
        if normal is not None:
            assert normal_uri(normal) == normal
            assert normal.isascii()
            assert ".." not in normal.split("/")


@given(st.text("abé /~", min_size=1, max_size=8), st.data())
def test_percent_encoding_what_needs_none_changes_nothing(text: str, data: st.DataObject) -> None:
    spelled = "".join(
        "".join(f"%{byte:02x}" for byte in each.encode())
        if each != "/" and data.draw(st.booleans())
        else each
        for each in text
    )
    assert normal_uri(f"note://a/{spelled}") == normal_uri(f"note://a/{text}")


@pytest.mark.parametrize(
    ("template", "normal"),
    [
        ("note://a/{id}", "note://a/{id}"),
        ("NOTE://Café/{id}", "note://caf%C3%A9/{id}"),
        ("note://{name}/X%7e", "note://{name}/X~"),
        ("note://host{/path*}{?q}", "note://host{/path*}{?q}"),
        ("HTTP://h:80/{A}é/{B}", "http://h/{A}%C3%A9/{B}"),
        ("note://plain", "note://plain/"),
        ("note://a/../{x}", None),
        ("{scheme}://x", None),
        ("note://a/\x00{x}", None),
    ],
)
def test_template_is_normalized_between_its_expressions(template: str, normal: str | None) -> None:
    assert normal_template(template) == normal
    if normal is not None:
        UriMatcher(UriTemplate(normal))


def test_spellings_lead_back_to_what_was_added_unless_several_could_be_meant() -> None:
    spellings = UriSpellings(["note://café", "note://b/"])
    assert spellings.find("note://caf%C3%A9") == "note://café"
    assert spellings.find("note://other") is None
    spellings.add("note://caf%c3%a9")
    assert spellings.find("note://caf%C3%A9") is None
    assert spellings.find_all("NOTE://café") == ["note://café", "note://caf%c3%a9"]
    spellings.discard("note://café")
    spellings.discard("note://never added")
    assert spellings.find("note://caf%C3%A9") == "note://caf%c3%a9"
    assert repr(spellings) == "<UriSpellings of 2 URIs>"
    spellings.discard("note://caf%c3%a9")
    assert len(spellings) == 1
