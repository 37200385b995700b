# Invariant: a template that is accepted reads back what it wrote: match(expand(values)) == values; whatever a URI holds,
# match gives values that stay within their segments, or None; nothing but DeclarationError is raised, and only for the
# template; the time is linear in the URI.
"""URI templates of `mcp_core.registry`: written by RFC 6570, read by our own rules.

The generator knows which values a template can carry (see the parts of `UriMatcher`); that they come back is what
"no template that can be read in two ways" means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_core.registry import DeclarationError, UriMatcher, UriTemplate

from .mutations import damage
from .targets import Target
from .timing import within
from .values import weighted

# template; values to write; a URI to read; how many times its middle comes, to make it long
Case: TypeAlias = tuple[str, dict[str, Any], str, int]

# Seconds.
PER_CHARACTER: Final = 5e-6
START: Final = 0.05
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")


def check(case: Case) -> Iterable[str]:
    text, values, uri, times = case
    try:
        template = UriTemplate(text)
    except DeclarationError:
        yield "no template"
        return
    try:
        matcher = UriMatcher(template)
    except DeclarationError:
        yield "template that cannot be read back"
        return
    kinds = _kinds(template)
    carried = {name: value for name, value in values.items() if name in kinds and _fits(kinds[name], value)}
    if carried.keys() | matcher.optional | _lists_that_may_be_absent(kinds) >= kinds.keys():
        written = template.expand(carried)
        found = matcher.match(written)
        assert found is not None, f"{written!r} was written by the template, and is not read by it"
        wanted = {name: [] for name in _lists_that_may_be_absent(kinds)} | carried
        assert found == wanted, f"{written!r} reads {found}"
        yield "read back: " + " ".join(sorted(set(kinds.values())))
    yield from _check_foreign(template, matcher, kinds, uri)
    if times > 1:
        middle = len(uri) // 2
        long = uri[:middle] + uri[middle : middle + 3] * times + uri[middle + 3 :]
        within(START + PER_CHARACTER * len(long), lambda: matcher.match(long))
        yield "long"


def _kinds(template: UriTemplate) -> dict[str, str]:
    """What each variable is: its operator, with a star if it is a list."""
    return {
        variable.name: part.operator + ("*" if variable.explode else "")
        for part in template.parts
        if not isinstance(part, str)
        for variable in part.variables
    }


def _lists_that_may_be_absent(kinds: Mapping[str, str]) -> set[str]:
    return {name for name, kind in kinds.items() if kind.startswith(("/*", "?*", "&*", ";*"))}


def _fits(kind: str, value: Any) -> bool:
    """Whether a variable of this kind can carry the value."""
    if kind.endswith("*"):
        return (
            isinstance(value, list)
            and 0 < len(value) <= 256
            and all(_fits(kind[:-1] or "item", item) for item in value)
        )
    if not isinstance(value, str):
        return False
    if kind in ("+", "#"):
        # What is reserved is written as it is, so a value with a triplet of its own comes back decoded, and a `?` begins
        # the query that may follow; a path cannot go up or begin at the root.
        parts = value.replace("\\", "/").split("/")
        return (
            value != ""
            and not set(value) & {"?", "\0"}
            and not _TRIPLET.search(value)
            and ".." not in parts
            and (kind == "#" or value[0] not in "/\\")
        )
    if kind in ("?", "&", ";") and not value:
        return True
    return value not in ("", "..") and not set(value) & {"/", "\\", "\0"}


def _check_foreign(
    template: UriTemplate, matcher: UriMatcher, kinds: Mapping[str, str], uri: str
) -> Iterable[str]:
    found = matcher.match(uri)
    if found is None:
        yield "foreign"
        return
    for name, value in found.items():
        for text in value if isinstance(value, list) else [value]:
            assert "\0" not in text
            parts = text.replace("\\", "/").split("/")
            assert ".." not in parts, f"{name!r} climbs: {text!r}"
            may_have_segments = kinds[name].startswith(("+", "#"))
            assert may_have_segments or len(parts) == 1, f"{name!r} leaves: {text!r}"
            text.encode()
    assert kinds.keys() - matcher.optional <= found.keys() <= kinds.keys()
    yield "matched: " + " ".join(sorted(set(kinds.values())))
    if all(_fits(kinds[name], value) or value in ([], "") for name, value in found.items()):
        again = matcher.match(template.expand(found))
        assert again == found, f"{found} is written as {template.expand(found)!r} and reads {again}"


_NAMES: Final = ("a", "b", "c", "d_1", "e.f", "%41")
_LITERALS: Final = (
    *("", "x", "-", ".", "/", "//", "?", "&", "#", ";", ",", "=", ":", "@", "é", "'", "(", "!"),
    *("x://", "weather://", "/v1/", ".json", "%20", "~x", "a=b"),
)
_WRONG: Final = (
    *("{", "}", "{}", "{!x}", "{x:}", "{x:3}", "{x:10000}", "{a b}", "{?x*:1}"),
    *("%", "%4", " ", "<", "\0"),
)
_TEXTS: Final = (
    *("", "a", "x", "Oslo", "é", "\U0001f600", "true", "a b", "a,b", "a=b", "a&b", "a;b", "a.b", "a-b"),
    *("/", "\\", ".", "..", "...", "/etc", "a/b", "a/../b", "?", "#", "\0", "x://", "+", "~"),
    *("%", "%41", "%2F", "%00", "%2e%2e"),
)


def _text() -> SearchStrategy[str]:
    return st.one_of(st.sampled_from(_TEXTS), st.text("ab./,=&;?#%-\\é 2F", max_size=5), st.text(max_size=4))


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
    broken = st.tuples(whole, st.sampled_from(_WRONG), whole).map("".join)
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
        uri = _written(text, given)
        if uri and draw(st.booleans()):
            uri = _damaged(draw, uri)
        times = 20_000 if draw(st.integers(0, 499)) == 499 else 1
        return text, given, uri or draw(texts), times

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


def _written(text: str, values: Mapping[str, Any]) -> str:
    """What the template makes of the values, "" if it makes nothing."""
    try:
        return UriTemplate(text).expand(values)
    except ValueError:  # of which DeclarationError is one
        return ""


TARGET: Final = Target("uri_template", cases, check)
