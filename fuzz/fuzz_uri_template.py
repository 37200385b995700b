# Invariant: an accepted template matches what it expands: match(expand(values)) == values. For any
# URI, match gives values that stay within their segments, or None. Only InvalidUriTemplate is
# raised, and only for the template. The time is linear in the length of the URI.
"""URI templates of `mcp_core.urls`: expanded by RFC 6570, matched by our own rules.

The generator knows which values a template can carry (see the parts of `UriMatcher`). "No ambiguous
template" means that a match returns these values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.targets import Target
from fuzz.timing import run_within
from mcp_core.urls import InvalidUriTemplate, UriMatcher, UriTemplate
from mcp_trio.oracle.strategies._mutations import damage
from mcp_trio.oracle.strategies._values import weighted

# template; values to expand; a URI to match; how many times its middle is repeated, to make it long
Case: TypeAlias = tuple[str, dict[str, Any], str, int]

# Seconds.
PER_CHARACTER: Final = 5e-6
START: Final = 0.05
# Segments that lead out of a directory, on any system.
_LEAVES: Final = re.compile(r"[A-Za-z]:|\.\. *\Z")
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")


def check(case: Case) -> Iterable[str]:
    text, values, uri, repeats = case
    try:
        template = UriTemplate(text)
    except InvalidUriTemplate:
        yield "invalid template"
        return
    try:
        matcher = UriMatcher(template)
    except InvalidUriTemplate:
        yield "template that cannot be matched"
        return
    kinds = _kinds(template)
    values_to_write = {
        name: value
        for name, value in values.items()
        if name in kinds and _can_carry(kinds[name], value)
    }
    if values_to_write.keys() | matcher.optional | _optional_lists(kinds) >= kinds.keys():
        written = template.expand(values_to_write)
        found = matcher.match(written)
        assert found is not None, (
            f"{written!r} was expanded from the template, but does not match it"
        )
        expected = {name: [] for name in _optional_lists(kinds)} | values_to_write
        assert found == expected, f"{written!r} matches as {found}"
        yield "round trip: " + " ".join(sorted(set(kinds.values())))
    yield from _check_arbitrary(template, matcher, kinds, uri)
    if repeats > 1:
        middle = len(uri) // 2
        long = uri[:middle] + uri[middle : middle + 3] * repeats + uri[middle + 3 :]
        run_within(START + PER_CHARACTER * len(long), lambda: matcher.match(long))
        yield "long"


def _kinds(template: UriTemplate) -> dict[str, str]:
    """Return the kind of each variable: its operator, with a star if it is a list."""
    return {
        variable.name: part.operator + ("*" if variable.explode else "")
        for part in template.parts
        if not isinstance(part, str)
        for variable in part.variables
    }


def _optional_lists(kinds: Mapping[str, str]) -> set[str]:
    return {name for name, kind in kinds.items() if kind.startswith(("/*", "?*", "&*", ";*"))}


def _can_carry(kind: str, value: Any) -> bool:
    """True if a variable of this kind can carry the value."""
    if kind.endswith("*"):
        return (
            isinstance(value, list)
            and 0 < len(value) <= 256
            and all(_can_carry(kind[:-1] or "item", item) for item in value)
        )
    if not isinstance(value, str):
        return False
    if kind in ("+", "#"):
        # Reserved characters are not encoded, so a value with a triplet of its own comes back
        # decoded, and `?` starts a query. A path must not go up or begin at the root.
        parts = value.replace("\\", "/").split("/")
        return (
            value != ""
            and not set(value) & {"?", "\0"}
            and not _TRIPLET.search(value)
            and ".." not in parts
            and (kind == "#" or (value[0] not in "/\\" and not any(map(_LEAVES.match, parts))))
        )
    if kind in ("?", "&", ";") and not value:
        return True
    return value != "" and not set(value) & {"/", "\\", "\0"} and not _LEAVES.match(value)


def _check_arbitrary(
    template: UriTemplate, matcher: UriMatcher, kinds: Mapping[str, str], uri: str
) -> Iterable[str]:
    found = matcher.match(uri)
    if found is None:
        yield "no match"
        return
    for name, value in found.items():
        for text in value if isinstance(value, list) else [value]:
            assert "\0" not in text
            parts = text.replace("\\", "/").split("/")
            assert ".." not in parts, f"{name!r} has a dot segment: {text!r}"
            if not kinds[name].startswith("#"):
                assert not any(map(_LEAVES.match, parts)), f"{name!r} leads elsewhere: {text!r}"
            may_have_segments = kinds[name].startswith(("+", "#"))
            assert may_have_segments or len(parts) == 1, f"{name!r} spans segments: {text!r}"
            text.encode()
    assert kinds.keys() - matcher.optional <= found.keys() <= kinds.keys()
    yield "matched: " + " ".join(sorted(set(kinds.values())))
    if all(_can_carry(kinds[name], value) or value in ([], "") for name, value in found.items()):
        again = matcher.match(template.expand(found))
        assert again == found, (
            f"{found} expands to {template.expand(found)!r} and matches as {again}"
        )


_NAMES: Final = ("a", "b", "c", "d_1", "e.f", "%41")
_LITERALS: Final = (
    *("", "x", "-", ".", "/", "//", "?", "&", "#", ";", ",", "=", ":", "@", "é", "'", "(", "!"),
    *("x://", "weather://", "/v1/", ".json", "%20", "~x", "a=b"),
)
_INVALID: Final = (
    *("{", "}", "{}", "{!x}", "{x:}", "{x:3}", "{x:10000}", "{a b}", "{?x*:1}"),
    *("%", "%4", " ", "<", "\0"),
)
_TEXTS: Final = (
    *(
        "",
        "a",
        "x",
        "Oslo",
        "é",
        "\U0001f600",
        "true",
        "a b",
        "a,b",
        "a=b",
        "a&b",
        "a;b",
        "a.b",
        "a-b",
    ),
    *("/", "\\", ".", "..", "...", "/etc", "a/b", "a/../b", "?", "#", "\0", "x://", "+", "~"),
    *("%", "%41", "%2F", "%00", "%2e%2e"),
)


def _text() -> SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(_TEXTS), st.text("ab./,=&;?#%-\\é 2F", max_size=5), st.text(max_size=4)
    )


def _template() -> SearchStrategy[str]:
    operator = st.sampled_from(("", "", "", "+", "#", ".", "/", ";", "?", "&"))
    name = st.sampled_from([name + modifier for name in _NAMES for modifier in ("", "", "", "*")])
    expression = st.builds(
        lambda operator, names: f"{{{operator}{','.join(names)}}}",
        operator,
        st.lists(name, min_size=1, max_size=2),
    )
    part = st.one_of(st.sampled_from(_LITERALS), expression)
    whole = st.lists(part, max_size=4).map("".join)
    broken = st.tuples(whole, st.sampled_from(_INVALID), whole).map("".join)
    return weighted((9, whole), (1, broken))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    templates, texts = _template(), _text()
    values = st.dictionaries(
        st.sampled_from(_NAMES),
        weighted((2, texts), (1, st.lists(texts, max_size=3))),
        min_size=2,
        max_size=6,
    )

    @st.composite
    def case(draw: DrawFn) -> Case:
        text, given = draw(templates), draw(values)
        uri = _expand(text, given)
        if uri and draw(st.booleans()):
            uri = _damaged(draw, uri)
        repeats = 20_000 if draw(st.integers(0, 499)) == 499 else 1
        return text, given, uri or draw(texts), repeats

    if not seeds:
        return case()

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        text, given, uri, _ = draw(st.sampled_from(seeds))
        other = draw(values)
        return text, {**given, **other}, _damaged(draw, uri), 1

    return weighted((3, case()), (1, recorded()))


def _damaged(draw: DrawFn, uri: str) -> str:
    return damage(draw, uri.encode()).decode(errors="replace")


def _expand(text: str, values: Mapping[str, Any]) -> str:
    """Expand the template, or return "" if that is impossible."""
    try:
        return UriTemplate(text).expand(values)
    except ValueError:  # includes InvalidUriTemplate
        return ""


TARGET: Final = Target("uri_template", cases, check)
