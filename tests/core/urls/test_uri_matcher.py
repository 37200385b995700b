"""Matching of URIs: values, URIs that do not match, and templates that are rejected."""

from __future__ import annotations

import ntpath
import re
import sys
from pathlib import PureWindowsPath
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.urls import InvalidUriTemplate
from mcp_core.urls._uri_matcher import UriMatcher
from mcp_core.urls._uri_template import UriTemplate
from tests.levels import fewer_examples


def match(template: str, uri: str) -> dict[str, str | list[str]] | None:
    return UriMatcher(UriTemplate(template)).match(uri)


MATCHES: list[tuple[str, str, dict[str, Any] | None]] = [
    # one value is one segment
    ("weather://{city}", "weather://Oslo", {"city": "Oslo"}),
    ("weather://{city}", "weather://S%C3%A3o%20Paulo", {"city": "São Paulo"}),
    ("weather://{city}", "weather://São Paulo", {"city": "São Paulo"}),
    ("weather://{city}", "weather://", None),
    ("weather://{city}", "weather://Oslo/now", None),
    ("weather://{city}", "weather://Oslo?x", None),
    ("weather://{city}", "weather://Oslo#x", None),
    ("weather://{city}", "other://Oslo", None),
    ("weather://{city}/now", "weather://Oslo/now", {"city": "Oslo"}),
    ("weather://{city}/now", "weather://Oslo/later", None),
    ("weather://{city}/now", "weather://Oslo", None),
    ("fixed://x", "fixed://x", {}),
    ("fixed://x", "fixed://xy", None),
    # what ends a value
    ("x:{a}.json", "x:report.json", {"a": "report"}),
    ("x:{a}.json", "x:report.json.json", {"a": "report.json"}),
    ("x:{a}.json", "x:.json", None),
    ("x:{a}.json", "x:report.xml", None),
    ("x:{a}-v/{b}", "x:1-v-v/2", {"a": "1-v", "b": "2"}),
    ("x:{a}@{b}", "x:me@host", {"a": "me", "b": "host"}),
    ("x:{a}@{b}", "x:me@host@more", {"a": "me", "b": "host@more"}),
    ("x:{a}@{b}", "x:m%40e@host", {"a": "m@e", "b": "host"}),
    ("x:{lat},{lon}", "x:1.5,-2", {"lat": "1.5", "lon": "-2"}),
    ("x:{lat,lon}", "x:1.5,-2", {"lat": "1.5", "lon": "-2"}),
    ("x:{lat,lon}", "x:1.5", None),
    ("x:{a}{?q}", "x:1?q=2", {"a": "1", "q": "2"}),
    ("x:{a}{;q}", "x:1;q=2", {"a": "1", "q": "2"}),
    ("x:{a}%20b/{c}", "x:1%20b/2", {"a": "1", "c": "2"}),
    ("x:{a}{/b}", "x:1/2", {"a": "1", "b": "2"}),
    ("x:{a}.d{/b*}", "x:1.d/2/3", {"a": "1", "b": ["2", "3"]}),
    # labels and paths
    ("x{.ext}", "x.json", {"ext": "json"}),
    ("x{.ext}", "x", None),
    ("x:{/a,b}", "x:/1/2", {"a": "1", "b": "2"}),
    ("x:{/a,b}", "x:/1", None),
    # several segments
    ("f://{+path}", "f://a/b/c", {"path": "a/b/c"}),
    ("f://{+path}", "f://a?b#c", {"path": "a?b#c"}),
    ("f:{+path}.txt", "f:a/b.txt", {"path": "a/b"}),
    ("f:{+path}.txt", "f:a/b.md", None),
    ("f:{+path}{?rev}", "f:a/b?rev=3", {"path": "a/b", "rev": "3"}),
    ("f:{+path}{?rev}", "f:a/b", {"path": "a/b"}),
    ("f:{+path}", "f:", None),
    ("f:x{#part}", "f:x#a/b", {"part": "a/b"}),
    ("f:x{#part}", "f:x#/a/b", {"part": "/a/b"}),
    ("f:x{/path*}", "f:x/a/b", {"path": ["a", "b"]}),
    ("f:x{/path*}", "f:x", {"path": []}),
    ("f:x{/path*}", "f:xy", None),
    ("f:x{/path*}", "f:x/a//b", None),
    ("f:x{/path*}", "f:x/a%20b", {"path": ["a b"]}),
    ("f:x{/path*}{?q}", "f:x/a?q=1", {"path": ["a"], "q": "1"}),
    ("f:x{/path*}#top", "f:x/a#top", {"path": ["a"]}),
    # lists
    ("l:{items*}", "l:a,b%2Cc", {"items": ["a", "b,c"]}),
    ("l:{items*}", "l:a,,b", None),
    ("l:{items*}/x", "l:a/x", {"items": ["a"]}),
    # named values
    ("q:{?a,b}", "q:?a=1&b=2", {"a": "1", "b": "2"}),
    ("q:{?a,b}", "q:?b=2&a=1", {"a": "1", "b": "2"}),
    ("q:{?a,b}", "q:?b=", {"b": ""}),
    ("q:{?a,b}", "q:", {}),
    ("q:{?a,b}", "q:?", None),
    ("q:{?a,b}", "q:?c=1", None),
    ("q:{?a,b}", "q:?a=1&a=2", None),
    ("q:{?a*}", "q:?a=1&a=2", {"a": ["1", "2"]}),
    ("q:{?a*}", "q:", {"a": []}),
    ("q:{?a}", "q:?a=x%26y%3Dz", {"a": "x&y=z"}),
    ("q:?k=1{&a}", "q:?k=1&a=2", {"a": "2"}),
    ("q:?k=1{&a}", "q:?k=1", {}),
    ("q:{;a,b}", "q:;a=1;b", {"a": "1", "b": ""}),
    ("q:{;a}/x", "q:;a=1/x", {"a": "1"}),
    ("q:{;a}/x", "q:/x", {}),
    ("q:{;a}{?b}", "q:;a=1?b=2", {"a": "1", "b": "2"}),
    ("q:{?a}#f", "q:?a=1#f", {"a": "1"}),
    ("q:{?a}{#f}", "q:?a=1#g", {"a": "1", "f": "g"}),
    ("q:#{?a}", "q:#?a=1", {"a": "1"}),
    ("q:{#f}{?a}", "q:#g?a=1", {"f": "g", "a": "1"}),
    ("q:{x}/a{#f}", "q:1/a#g", {"x": "1", "f": "g"}),  # two literals behind a variable
]


@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_uri_matcher_match_gives_the_values(
    template: str, uri: str, values: dict[str, Any] | None
) -> None:
    assert match(template, uri) == values


# Every encoding with which a value could leave its path segment.
ESCAPES = [
    "..",
    "%2e%2e",
    "%2E.",
    ".%2e",
    "../etc/passwd",
    "..%2Fetc%2Fpasswd",
    "..%2fetc",
    "..\\etc",
    "..%5Cetc",
    "a%2F..%2Fb",
    "a/../b",
    "a\\..\\b",
    "a%5c%2e%2e%5cb",
    "%00",
    "a%00.txt",
    "a\x00b",
    "%C0%AE%C0%AE",  # an overlong encoding of `..` is no UTF-8
    "%FF",
    "%",
    "%2",
    "%zz",
    "%%32%65",
    # Windows: another drive, the current directory of another drive, a device, a share
    "C:",
    "c:",
    "C%3A",
    "%43%3a",
    "C:secret.txt",
    "C:/Windows",
    "C:%2FWindows",
    "C:\\Windows",
    "C%3A%5CWindows",
    "z:..",
    "a/C:/Windows",
    "a%5CC:%5CWindows",
    "\\\\server\\share",
    "%5c%5cserver%5cshare",
    "%5C%5C%3F%5CC:%5C",
    "\\\\.\\COM1",
    "//server/share",
    "%2F%2Fserver/share",
    # and where the value is split at one separator, and its parts are joined to a directory
    "a/%5C%5Cserver%5Cshare%5Cf",
    "a/\\\\?\\UNC\\server\\share",
    "a/%5CWindows",
    "a%5C/Windows",
    "a%5C%5Cserver%5Cshare",
    "a/b/%5c",
    # and spaces at the end of a name, which it ignores
    "..%20",
    "..%20%20",
    "a/..%20/b",
]


@pytest.mark.requirement("RES-12")
@pytest.mark.parametrize(
    "template",
    ["f://{x}", "f://{x*}", "f://r{/x}", "f://r{/x*}", "f://r{?x}", "f://r{;x}", "f://{+x}"],
)
def test_uri_matcher_value_that_leaves_its_segment_does_not_match(template: str) -> None:
    place = template.partition("{")[0]
    operator = template.partition("{")[2][0]
    lead = {"/": "/", "?": "?x=", ";": ";x="}.get(operator, "")
    for value in ESCAPES:
        assert match(template, place + lead + value) is None, value


@pytest.mark.requirement("RES-12")
@pytest.mark.parametrize("value", ["a%2Fb", "a%2fb", "a%5Cb", "a\\b", "%2Fetc", "a%2F"])
def test_uri_matcher_encoded_separator_does_not_match(value: str) -> None:
    assert match("f://{x}", f"f://{value}") is None
    assert match("f://r{/x*}", f"f://r/{value}") is None
    assert match("f://r{?x}", f"f://r?x={value}") is None


@pytest.mark.parametrize("value", ["/etc/passwd", "%2Fetc/passwd", "\\etc", "%5Cetc"])
def test_uri_matcher_absolute_path_does_not_match(value: str) -> None:
    for place in ("f:///", "f://", "f:"):
        assert match(place + "{+x}", place + value) is None


@pytest.mark.parametrize(
    "value", ["...", ".", "..a", "a..", "a..b", "%252e%252e", "12:30", "ab:c", "é:", ":", "urn:a:b"]
)
def test_uri_matcher_harmless_dots_match(value: str) -> None:
    found = match("f://{x}", f"f://{value}")
    assert found == {"x": value.replace("%25", "%")}


@pytest.mark.parametrize(
    ("template", "uri", "error"),
    [
        ("f://{+x}", "f://C:/a", "the value of `x` holds a drive letter"),
        ("f://{+x}", "f://a/%2e%2e/b", "the value of `x` holds a `..`"),
        ("f://{+x}", "f:///etc", "the value of `x` is an absolute path"),
        ("f://{+x}", "f://%5c%5cserver", "the value of `x` is an absolute path"),
        ("f://{+x}", "f://a/%5cWindows", "the value of `x` holds an absolute path"),
        ("f://{+x}", "f://a//b", None),
        ("f://{+x}", "f://http://h/a%5Cb", None),
        ("f://{+x}", "f://a%00", "the value of `x` holds a control character"),
        ("f://{a}/{x}", "f://ok/a%2Fb", "the value of `x` holds a separator"),
        ("f://{a}/{x}", "f://a%5Cb/ok", "the value of `a` holds a separator"),
        ("f://r{/x*}", "f://r/a/C:", "the value of `x` holds a drive letter"),
        ("f://r{?x*}", "f://r?x=a&x=..", "the value of `x` holds a `..`"),
        ("f://r{#x}", "f://r#a/../b", "the value of `x` holds a `..`"),
        ("f://r{#x}", "f://r#%00", "the value of `x` holds a control character"),
        ("f://r{#x}", "f://r#a%0Ab", "the value of `x` holds a control character"),
        ("f://{x}", "f://a%0D%0Ab", "the value of `x` holds a control character"),
        ("f://{x}", "f://a\tb", "the value of `x` holds a control character"),
        ("f://{x}", "f://a%1Bb", "the value of `x` holds a control character"),
        ("f://{x}", "f://a%7F", "the value of `x` holds a control character"),
        ("f://{x}", "f://a%C2%85b", "the value of `x` holds a control character"),
        ("f://r{?x}", "f://r?x=%0A", "the value of `x` holds a control character"),
        ("f://r{/x*}", "f://r/a/%9B", None),  # not UTF-8, so of another form
        ("f://{x}", "f://a%C2%A0%E2%80%AEb", None),
        ("f://r{#x}", "f://r#C:/a", None),
        ("f://{+x}", "f://a/b", None),
        # Another form is not refused: the URI is of something else.
        ("f://{+x}", "g://C:/a", None),
        ("f://{a}/x", "f://../y", None),
    ],
)
def test_uri_matcher_error_names_variable_and_reason(
    template: str, uri: str, error: str | None
) -> None:
    matcher = UriMatcher(UriTemplate(template))
    assert matcher.find_error(uri) == error
    assert (matcher.match(uri) is None) is (error is not None or not matcher.has_form(uri))
    assert matcher.has_form(uri) or error is None


def test_uri_matcher_unchecked_variable_may_be_any_text() -> None:
    matcher = UriMatcher(UriTemplate("s://{room}{?q,path}"), unchecked=["q"])
    for text in ("a/b", "../..", "C:\\", "a\0b", ""):
        uri = matcher.template.expand({"room": "r", "q": text})
        assert matcher.match(uri) == {"room": "r", "q": text}
        assert matcher.find_error(matcher.template.expand({"room": "r", "path": "C:"}))
    assert matcher.match("s://C:?q=a") is None
    assert UriMatcher(UriTemplate("s://{+x}"), ["x"]).match("s:///../C:/") == {"x": "/../C:/"}
    with pytest.raises(InvalidUriTemplate, match="has no variable 'p'"):
        UriMatcher(UriTemplate("s://{+x}"), ["p"])


def test_uri_matcher_lone_surrogate_does_not_match() -> None:
    assert match("f://{x}", "f://%20\ud800") is None


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{a}{b}", "'a' and what follows"),
        ("{a}-{b}", "'a' and what follows"),
        ("{a}.{b}", "'a' and what follows"),
        ("{a}{.b}", "'a' and what follows"),
        ("{.a,b}", "'a' and what follows"),
        ("x{.a*}", "dots"),
        ("{a}{+b}", "'a' and what follows"),
        ("{a*,b}", "the end of the list"),
        ("{/a*,b}", "the end of the list"),
        ("{a*},{b}", "comma follows"),
        ("{+a,b}", "commas"),
        ("{+a*}", "commas"),
        ("{#a,b}", "commas"),
        ("{+a}/{b}", "'a' may hold any character"),
        ("{+a}/x{?b}", "'a' may hold any character"),
        ("{+a}{&b}", "'a' may hold any character"),
        ("{+a}{?b}#", "'a' may hold any character"),
        ("x{/a*}/y", "'a' takes all segments"),
        ("x{/a*}{b}", "'a' takes all segments"),
        ("x{/a*}{;b}", "'a' takes all segments"),
        ("x{/a*}{/b*}", "'a' takes all segments"),
        ("x{?a}/y", "may be followed only by"),
        ("x{?a}{&b}", "may be followed only by"),
        ("x{;a}{b}", "may be followed only by"),
        ("x{;a}y", "may be followed only by"),
        ("{a:3}", "first characters"),
        ("{a}/{a}", "occurs twice"),
        ("{?a,a}", "occurs twice"),
    ],
)
def test_uri_matcher_ambiguous_template_raises(template: str, why: str) -> None:
    with pytest.raises(InvalidUriTemplate, match=why):
        UriMatcher(UriTemplate(template))


def test_uri_matcher_optional_variables_and_repr() -> None:
    matcher = UriMatcher(UriTemplate("x:{a}{/p*}{?q,r*}"))
    assert matcher.optional == {"q"}
    assert repr(matcher) == "UriMatcher('x:{a}{/p*}{?q,r*}')"


# Values that can be matched: not empty, without separators, not `..`, without a drive letter.
characters = "aZ0-._~:?#[]@!$&'()*+,;=%\"<> é漢😀"
words = st.text(characters, min_size=1, max_size=8).filter(
    lambda word: word.rstrip(" ") != ".." and word[:2] not in ("a:", "Z:")
)
plain_words = st.text("aZ0-_~é漢😀 ", min_size=1, max_size=8)
paths = st.lists(plain_words, min_size=1, max_size=4).map("/".join)
several = st.lists(words, min_size=1, max_size=4)

ROUND_TRIPS: list[tuple[str, dict[str, st.SearchStrategy[Any]]]] = [
    ("x://{a}", {"a": words}),
    ("x://{a}/b/{c}", {"a": words, "c": words}),
    ("x://{a}.json", {"a": words}),
    ("x://{a}-z:{b}@{c}", {"a": words, "b": words, "c": words}),
    ("x://{a,b,c}", {"a": words, "b": words, "c": words}),
    ("x://{a*}/z", {"a": several}),
    ("x://h{.a}", {"a": words}),
    ("x://h{/a,b}", {"a": words, "b": words}),
    ("x://h{/a*}", {"a": st.lists(words, max_size=4)}),
    ("x://h{/a*}{?b}", {"a": st.lists(words, max_size=4), "b": words}),
    ("x://{+a}", {"a": paths}),
    ("x://{+a}.md", {"a": paths}),
    ("x://{+a}{?b}", {"a": paths, "b": words}),
    ("x://h{#a}", {"a": paths}),
    ("x://h{?a,b*}", {"a": words, "b": st.lists(words, max_size=4)}),
    ("x://h?z=1{&a,b}", {"a": words, "b": words}),
    ("x://h{;a,b}/z", {"a": words, "b": words}),
    ("é://ü{a}", {"a": words}),
]


@pytest.mark.parametrize(("template", "strategies"), ROUND_TRIPS)
@fewer_examples(3)
@given(data=st.data())
def test_uri_matcher_match_inverts_expand(
    template: str, strategies: dict[str, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    values = data.draw(st.fixed_dictionaries(strategies))
    parsed = UriTemplate(template)
    assert UriMatcher(parsed).match(parsed.expand(values)) == values


@given(
    uri=st.text("ab/?#;&=.,%2eEfF5cC\\: ", max_size=40),
    template=st.sampled_from([row[0] for row in ROUND_TRIPS]),
)
def test_uri_matcher_any_input_gives_safe_values(uri: str, template: str) -> None:
    values = match(template, template.partition("{")[0] + uri) or {}
    for value in values.values():
        for text in [value] if isinstance(value, str) else value:
            segments = text.replace("\\", "/").split("/")
            assert ".." not in segments
            assert "\0" not in text
            # For Python any character is a drive; Windows has letters only.
            if "{#" not in template and not re.search(r"(^|[/\\])[^A-Za-z]:", text):
                assert not any(PureWindowsPath(segment).drive for segment in segments)
                assert PureWindowsPath("C:/base", text).is_relative_to("C:/base")
                if "{+" in template:
                    for separator in "/\\":
                        joined = ntpath.join("C:\\base", *text.split(separator))
                        assert joined.startswith("C:\\base\\")


@pytest.mark.parametrize(
    ("template", "lead", "item", "separator"),
    [
        ("x:{a*}", "", "v", ","),
        ("x:{/a*}", "/", "v", "/"),
        ("x:{?a*}", "?", "a=v", "&"),
        ("x:{;a*}", ";", "a=v", ";"),
    ],
)
def test_uri_matcher_list_has_at_most_256_members(
    template: str, lead: str, item: str, separator: str
) -> None:
    assert match(template, "x:" + lead + separator.join([item] * 256)) == {"a": ["v"] * 256}
    assert match(template, "x:" + lead + separator.join([item] * 257)) is None


KIB_64 = 64 * 1024


FILLERS = [
    "a",
    "/",
    ".",
    "%2e",
    "%2F",
    "../",
    "a/",
    "&a=",
    "a,",
    ";a",
    "%41",
    "%C3%A9",
    "%",
    ":",
    "-z:",
    "?",
    "x://",
    "%2",
]


@pytest.mark.parametrize("template", [row[0] for row in ROUND_TRIPS])
def test_uri_matcher_hostile_uri_takes_linear_time(template: str) -> None:
    """Counts executed lines of Python, which do not depend on the machine: a few per character."""
    matcher = UriMatcher(UriTemplate(template))
    for filler in FILLERS:
        uri = (template.partition("{")[0] + filler * KIB_64)[:KIB_64]
        assert lines_to_match(matcher, uri) < 8 * KIB_64, filler


def lines_to_match(matcher: UriMatcher, uri: str) -> int:
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        matcher.match(uri)
    finally:
        sys.settrace(before)
    return lines
