"""Expansion: the examples of RFC 6570, section 3.2, and the `uritemplate` package as oracle."""

from __future__ import annotations

import string
from typing import Any

import pytest
import uritemplate
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_core.urls import InvalidUriTemplate
from mcp_core.urls._uri_template import OPERATORS, UriTemplate
from tests.levels import fewer_examples

# RFC 6570, section 3.2.
VALUES: dict[str, Any] = {
    "count": ("one", "two", "three"),
    "dom": ("example", "com"),
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ("red", "green", "blue"),
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "undef": None,
    "number": 5,
    "yes": True,
}

EXPANSIONS = [
    # 3.2.1 variable expansion
    ("{count}", "one,two,three"),
    ("{count*}", "one,two,three"),
    ("{/count}", "/one,two,three"),
    ("{/count*}", "/one/two/three"),
    ("{;count}", ";count=one,two,three"),
    ("{;count*}", ";count=one;count=two;count=three"),
    ("{?count}", "?count=one,two,three"),
    ("{?count*}", "?count=one&count=two&count=three"),
    ("{&count*}", "&count=one&count=two&count=three"),
    # 3.2.2 simple
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{half}", "50%25"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{x,y}", "1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,empty}", "?1024,"),
    ("?{x,undef}", "?1024"),
    ("?{undef,y}", "?768"),
    ("{var:3}", "val"),
    ("{var:30}", "value"),
    ("{list}", "red,green,blue"),
    ("{list*}", "red,green,blue"),
    ("{keys}", "semi,%3B,dot,.,comma,%2C"),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
    # 3.2.3 reserved
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    ("{+base}index", "http://example.com/home/index"),
    ("{+path}/here", "/foo/bar/here"),
    ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path:6}/here", "/foo/b/here"),
    ("{+keys*}", "semi=;,dot=.,comma=,"),
    # 3.2.4 fragment
    ("{#var}", "#value"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("foo{#undef}", "foo"),
    ("foo{#empty}", "foo#"),
    # 3.2.5 label
    ("{.who}", ".fred"),
    ("{.half,who}", ".50%25.fred"),
    ("www{.dom*}", "www.example.com"),
    ("X{.empty_keys}", "X"),
    ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
    # 3.2.6 path segments
    ("{/who,dub}", "/fred/me%2Ftoo"),
    ("{/var,empty}", "/value/"),
    ("{/var:1,var}", "/v/value"),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
    # 3.2.7 parameters
    ("{;v,empty,who}", ";v=6;empty;who=fred"),
    ("{;hello:5}", ";hello=Hello"),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
    # 3.2.8 and 3.2.9 query
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("{?x,y,undef}", "?x=1024&y=768"),
    ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    # 2.3 values other than strings, section 3.1 literals
    ("{number}", "5"),
    ("{yes}", "true"),
    ("café:{var}", "caf%C3%A9:value"),
    ("%20{var}", "%20value"),
    ("{+pct}", "a%20b%25"),
]


@pytest.mark.parametrize(("template", "uri"), EXPANSIONS)
def test_uri_template_expand_examples_of_rfc_6570(template: str, uri: str) -> None:
    assert UriTemplate(template).expand({**VALUES, "pct": "a%20b%"}) == uri


@pytest.mark.parametrize(
    "template",
    [
        "{",
        "}",
        "{}",
        "a{b",
        "a}b",
        "{a",
        "{a b}",
        "{a,}",
        "{=a}",
        "{!a}",
        "{|a}",
        "{a:0}",
        "{a:10000}",
        "a\nb{x}",
        "a\x1b{x}",
        "a\x7f{x}",
        "a\x85{x}",
        "{x\n}",
        "{x\x85}",
        "{a:3*}",
        "{a**}",
        "{.}",
        "{a..b}",
        "{a.}",
        "{%4}",
        "{a{b}}",
        "a b",
        'a"b',
        "a<b",
        "a\\b",
        "a%b",
        "a\x00b",
        "a\n",
    ],
)
def test_uri_template_invalid_text_raises(template: str) -> None:
    with pytest.raises(InvalidUriTemplate, match="URI template"):
        UriTemplate(template)


def test_uri_template_prefix_of_a_list_raises() -> None:
    with pytest.raises(ValueError, match="prefix"):
        UriTemplate("{list:3}").expand(VALUES)


def test_uri_template_empty_composite_values() -> None:
    assert UriTemplate("{?a,b}").expand({"a": [], "b": {}}) == ""
    assert UriTemplate("{?a*}").expand({"a": {"x": "", "y": None}}) == "?x="
    assert UriTemplate("{;a*}").expand({"a": {"x": ""}}) == ";x"


def test_uri_template_repr_and_variables() -> None:
    template = UriTemplate("a://{x}/{y,x}{?z}")
    assert repr(template) == "UriTemplate('a://{x}/{y,x}{?z}')"
    assert template.variables == ("x", "y", "z")


# Every class of characters that the RFC distinguishes, and encodings of one to four bytes.
text = st.text("aZ0-._~:/?#[]@!$&'()*+,;=%\\\"<> \x00é漢😀", max_size=8)
words = text.filter(bool)

names = st.sampled_from(["a", "b", "long_name", "x.y"])
# The oracle treats 0 as an empty string.
scalars = text | st.integers(min_value=1, max_value=10**6)
lists = st.lists(words, min_size=1, max_size=3)
# The oracle sorts the members of a mapping, so only one member can be compared.
mappings = st.dictionaries(st.text(string.ascii_letters, min_size=1), words, min_size=1, max_size=1)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    operator = draw(st.sampled_from(sorted(OPERATORS)))
    variables = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    return (
        "{"
        + operator
        + ",".join(name + draw(st.sampled_from(["", "*"])) for name in variables)
        + "}"
    )


@fewer_examples(5)
@given(
    parts=st.lists(
        expressions() | st.text(string.ascii_letters + "/?#-._", max_size=4), max_size=4
    ),
    values=st.dictionaries(names, scalars | lists | mappings | st.none()),
)
def test_uri_template_expand_agrees_with_uritemplate(
    parts: list[str], values: dict[str, Any]
) -> None:
    template = "".join(parts)
    assert UriTemplate(template).expand(values) == uritemplate.expand(template, values)


@given(
    operator=st.sampled_from(sorted(OPERATORS)),
    length=st.integers(min_value=1, max_value=9),
    value=text,
)
def test_uri_template_prefix_agrees_with_uritemplate(
    operator: str, length: int, value: str
) -> None:
    # The oracle leaves the `<` of `%00<` raw where reserved characters are allowed. It is not one.
    assume("%" not in value or operator not in ("+", "#"))
    template = f"{{{operator}a:{length}}}"
    assert UriTemplate(template).expand({"a": value}) == uritemplate.expand(template, {"a": value})


def test_uri_template_unreserved_character_after_a_triplet_is_encoded() -> None:
    assert UriTemplate("{#a:4}").expand({"a": "%00<"}) == "#%00%3C"
