"""The use of each URL, address, URI and template, or why it is refused, in `uses.txt`.

    python -m tests.core.urls.uses

writes the file again.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.urls import (
    ElicitationUrl,
    UriMatcher,
    UriTemplate,
    Url,
    covers_url,
    find_url_error,
    http_url,
    is_internal_name,
    is_local_host,
    is_loopback_host,
    is_loopback_url,
    is_private_address,
    is_public_address,
    may_fetch,
    may_fetch_named,
    origin_of,
    origin_text,
    redacted_url,
    same_origin_redirect,
    url_transport,
)
from mcp_core.urls._normal_uri import normal_template, normal_uri
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["kept_uses", "used", "uses_to_find"]

_FILE: Final = Path(__file__).with_name("uses.txt")

_URLS: Final = (
    "https://e.com", "https://E.com:8443/a/b?c=d&e=f%20g#h", "HTTPS://e.com/", "http://e.com:80/x",
    "http://localhost:1/x", "http://localhost./", "http://a.localhost/", "http://127.9.9.9/",
    "http://[::1]:3000/x?y", "https://[2001:DB8::1]/", "https://[::ffff:10.0.0.1]:443",
    "https://192.0.2.1/", "https://8.8.8.8/", "https://2130706433/", "https://0x7f.1./",
    "https://127.1/", "https://a.0x/", "https://e.com./", "https://a_b-c.example/",
    "https://xn--bcher-kva.example/", "https://a.xn--80ak6aa92e.com/", "https://xn--a/",
    "https://xn--abc-.example", "https://axn--b.example/", "https://bücher.example/ü?ß",
    "https://u:p@e.com/x", "https://u@e.com", "https://@e.com/", "u:p@e.com:3128", "e.com:3128",
    "https://u%40:%3A@[::1]:1/", "https://u:p/q@e.com/", "https://u:p?q@e.com", "https://?a@b",
    "https://:443/", "https://", "https:///x", "https:e.com", "e.com", "", "?x", "#x",
    "https://e.com:0/", "https://e.com:65535/", "https://e.com:65536/", "https://e.com:x/",
    "https://e.com:", "https://::1/", "https://[::1/", "https://[v1.x]/", "https://[fe80::1%25a]/",
    "https://%65.com/", "https://-e.com/", "https://e-.com", "https://.e.com/", "https://e..com/",
    f"https://{'a' * 63}.com/", f"https://{'a' * 64}.com/", f"https://{'a.' * 126}aa/",
    f"https://{'a.' * 127}a/", "https://e,com/", "https://e.com/$(x)", "https://e.com/$x(y)",
    "https://e.com/a b", "https://e.com/\\x", "https://e.com/\ud800", "https://e.com/é\x7f",
    "https://e.com/[x];y=z,@!'*+%", f"https://e.com/{'x' * 106}", f"https://e.com/{'x' * 107}",
    "ws://e.com/x", "WSS://E.com:1", "ftp://e.com/", "mailto:a@e.com", "file:///x", "://e.com",
    "http:e.com", "javascript:alert(1)",
)  # fmt: skip

_ADDRESSES: Final = tuple(
    """
    0.0.0.0 0.255.255.255 1.0.0.0 9.255.255.255 10.0.0.0 10.255.255.255 11.0.0.0 100.63.255.255
    100.64.0.0 100.100.100.199 100.100.100.200 100.100.100.201 100.127.255.255 100.128.0.0
    126.255.255.255 127.0.0.0 127.0.0.1 127.255.255.255 128.0.0.0 168.63.129.15 168.63.129.16
    168.63.129.17 169.253.255.255 169.254.0.0 169.254.255.255 169.255.0.0 172.15.255.255 172.16.0.0
    172.31.255.255 172.32.0.0 191.255.255.255 192.0.0.0 192.0.0.192 192.0.0.255 192.0.1.0
    192.0.1.255 192.0.2.0 192.0.2.255 192.0.3.0 192.88.98.255 192.88.99.0 192.88.99.255 192.88.100.0
    192.167.255.255 192.168.0.0 192.168.255.255 192.169.0.0 198.17.255.255 198.18.0.0 198.19.255.255
    198.20.0.0 198.51.99.255 198.51.100.0 198.51.100.255 198.51.101.0 203.0.112.255 203.0.113.0
    203.0.113.255 203.0.114.0 223.255.255.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 ::
    ::1 ::2 ::10.0.0.1 ::ffff:8.8.8.8 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:100.100.100.200
    64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff 64:ff9b::808:808 64:ff9b::a00:1 64:ff9b::7f00:1
    64:ff9b::1:808:808 64:ff9b:1::1 1fff:ffff:: 2000:: 2000:ffff:: 2001:: 2001:1ff:: 2001:200::
    2001:db7:ffff:: 2001:db8:: 2001:db8:ffff:: 2001:db9:: 2001:ffff:: 2002:: 2002:808:808::
    2002:ffff:: 2003:: 2600:: 3ffe:ffff:: 3fff:: 3fff:fff:: 3fff:1000:: 3fff:ffff:: 4000:: fbff::
    fc00:: fd00:42::41 fd00:42::42 fd00:42::43 fd00:c1::a9fe:a9fd fd00:c1::a9fe:a9fe
    fd00:c1::a9fe:a9ff fd00:ec1:ffff:: fd00:ec2:: fd00:ec2:ffff:: fd00:ec3:: fd20:ce::253
    fd20:ce::254 fd20:ce::255 fdff:ffff:: fe00:: fe80::1 fe80::1%eth0 ff02::1 localhost LOCALHOST
    localhost. a.localhost a.localhost. localhost.a .localhost vault vault. VAULT. e.com e.com.
    a.arpa a.cluster a.consul a.corp a.home a.internal a.INTERNAL a.intranet a.lan a.local
    a.localdomain a.mail a.onion a.private a.svc a.test 127.1 1.2.3.4. 0x7f.1 2130706433 [::1]
    127.0.0.1. ::1. 1:2
    """.split()
)
_PUBLISHERS: Final = {
    "none": (),
    "public": ("8.8.8.8",),
    "public and loopback": ("8.8.8.8", "::1"),
    "loopback": ("127.0.0.1", "::1"),
    "loopback and private": ("127.0.0.1", "10.0.0.1"),
    "private": ("10.0.0.1",),
    "private and link-local": ("169.254.0.1", "10.0.0.1"),
    "link-local": ("169.254.0.1",),
}

_PAIRED: Final = (
    "https://e.com", "https://E.com:443/", "https://e.com/a", "https://e.com/a/",
    "https://e.com/ab", "https://e.com/a/b?x=1", "https://e.com/a?x=1", "https://e.com/a?x=2#f",
    "https://e.com:444/a", "http://e.com/a", "https://e.com:x/", "ftp://e.com/a", "a/../b",
    "../c?d", "//f.com/a", "/a", "?x=1", "", "#f", "https://[",
)  # fmt: skip

_URIS: Final = (
    "x:", "x:a", "x:a/", "x:a/b", "x:/a", "x:/a/b", "x://a", "x:a?q", "x:a?q=", "x:a?q=1",
    "x:a?q=1&r=2", "x:a?r=2&q=1", "x:a?q=1&q=2", "x:a?s=1", "x:a&q=1", "x:a;q=1;r=2", "x:a;q",
    "x:a#f", "x:a?q=1#f", "x:a,b", "x:a,,b", "x:,", "x:.a", "x:a.b", "x:.a.b", "x:a.json",
    "x:.json", "x:a.json.json", "x:%61", "x:a%2Fb", "x:%2Fa", "x:%5C", "x:a\\b", "x:/\\a", "x:a//b",
    "x:..", "x:../a", "x:a/..", "x:.. /a", "x:..%20", "x:...", "x:%2e.", "x:C:", "x:c%3Aa", "x:CC:",
    "x:a/C:b", "x:%00", "x:%1f", "x:%7f", "x:%C2%80", "x:%C2%9f", "x:%C2%A0", "x:%", "x:%2",
    "x:%zz", "x:%FF", "x:é", "x:a b", "y:a", "x:#/a", "x:#..", "x:#%0a", "x:#", "x:a-b", "x:a-b-c",
    "x:a:b", "x:a@b", "x:/", "x:/a//b", "x:/a?q=1", f"x:{','.join('a' * 256)}",
    f"x:{','.join('a' * 257)}", f"x:/{'/'.join('a' * 256)}", f"x:/{'/'.join('a' * 257)}",
    f"x:a?{'&'.join(['q=1'] * 256)}", f"x:a?{'&'.join(['q=1'] * 257)}",
)  # fmt: skip

_TEMPLATES: Final = (
    "", "x:", "x:a", "x:{a}", "x:{a}/", "x:{a}/{b}", "x:{a}{/b}", "x:{a}{b}", "x:{a}-{b}",
    "x:{a}.json", "x:{a}-v@{b}", "x:{a,b}", "x:{a*}", "x:{a*},", "x:{a*,b}", "x:{a*}/{b}",
    "x:{a:3}", "x:{a:0}", "x:{a:10000}", "x:{a}/{a}", "x:{+a}", "x:{+a}.json", "x:{+a}/{b}",
    "x:{+a}{?q}", "x:{+a}b{?q}", "x:{+a,b}", "x:{+a*}", "x:{+a}{?q}{&r}", "x:{+a}#f", "x:{#a}",
    "x:a{#f}", "x:{a}{#f}", "x:{#a*}", "x:{.a}", "x{.a,b}", "x:{.a*}", "x:{.a}.b", "x:{/a}",
    "x:{/a,b}", "x:{/a*}", "x:{/a*}/b", "x:{/a*}{?q}", "x:{/a*}#f", "x:{/a*}f", "x:{a}{?q}",
    "x:{a}{?q,r}", "x:{a}{?q*}", "x:{a}{?q,r*}", "x:{a}{?q}x", "x:{a}{?q}#f", "x:{a}{?q}{#f}",
    "x:{a}{?q}{&r}", "x:{a}?q={q}", "x:{a}?q=1{&r}", "x:{a}{&q}", "x:{a}{;q,r}", "x:{a}{;q*}/b",
    "x:{a}{;q}{?r}", "x:{a}{;q}{b}", "x:a{b", "x:a}b", "x:{}", "x:{a}}", "x:{a-b}", "x:{a.b}",
    "x:{a..b}", "x:{.}", "x:{%41}", "x:{%4}", "x:{!a}", "x:{a }", "x:{a,}", "x:a b", "x:%41%zz",
    "x:é%C3", "x:<a>", "x:a'b", 'x:a"b', "x:{{a}}", "x:{a}%20b/{b}", "X:{a}/%7e", "x://H/{a}",
    "{a}:b", "http://E.com:80{a}", "http://e.com{/a}?%7E", "http://{a}.E.com/%7e", "x://a/../{b}",
    "x:\x00{a}",
)  # fmt: skip

_VALUES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"a": "a/b c%20%", "b": "é", "q": "1&2", "r": "", "f": "#"},
    {"a": ["a", None, "b c"], "b": [], "q": ("1", 2), "r": {"k": "v", "n": None}, "f": ""},
    {"a": {"k": "v/w", "e": ""}, "b": {}, "q": {"k": ""}, "r": True, "f": 1.5},
    {"a": "", "b": 0, "q": False, "r": ["", "x"], "f": ["a", "b"]},
)

_URIS_TO_NORMALIZE: Final = (
    "x:a", "X:A", "x:%7e%41%2f%c3", "x:é ☃", "x:a..b", "x:..", "x:a/../b", "x:a/%2e%2E",
    "x:a\\..\\b", "x:a/..c", "x://..", "x://../a", "x://a..b/", "HTTP://E.com", "http://e.com:80",
    "http://e.com:80/", "http://e.com:/", "http://e.com:443/", "https://e.com:443/a",
    "https://e.com:80/", "ws://e.com:80/", "wss://e.com:443/", "ftp://e.com:21/", "ftp://e.com:80/",
    "x://e.com:80/", "http://U%3a:P@E.com:080/", "http://a:b:1/", "http://[::A]:80/",
    "http://[::A]", "http://[::A]:1", "http://[::É]/", "http://É%41%c3%89.com/", "x:///a", "x://",
    "http://e.com?q", "http://e.com?Q=%7e&é#%7E#é", "http://e.com/a?x/../y", "http://e.com/#..",
    "x:a\nb", "x:\x00", "x:%00", "x:%", "x:%4", "x:%4g", "x:\ud800", "x:a?\udfff", "a/b", "", ":a",
    "1:a", "a1+.-:b", "x:[a]|^`{}", "x:" + "a" * 8190, "x:" + "é" * 8190, "x:" + "é" * 8191,
)  # fmt: skip


def uses_to_find() -> dict[str, Iterator[str]]:
    """Return the lines of each kind of text, which are made as they are read, by its name."""
    return {
        "URLs": _of_urls(_URLS[:40]),
        "more URLs": _of_urls(_URLS[40:]),
        "pages": _of_pages(),
        "addresses": _of_addresses(),
        "fetches": _of_fetches(),
        "URLs at others": _of_pairs(),
        **{
            f"URIs of {first}": _of_matches(first, _TEMPLATES[first : first + 20])
            for first in range(0, len(_TEMPLATES), 20)
        },
        "expansions": _of_expansions(),
        "normal forms": _of_normal_forms(),
    }


def used(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _of_urls(urls: tuple[str, ...]) -> Iterator[str]:
    for url in urls:
        yield f"  {_short(url)}"
        errors = {find_url_error(url, allow_loopback=local) for local in (False, True)}
        yield f"    errors: {sorted(map(str, errors))}; shown: {redacted_url(url)}"
        yield _tried("server", lambda url: _parts(Url.parse(url)), url)
        yield _tried("proxy", lambda url: _proxy(*Url.parse_proxy(url)), url)
        yield f"    origin: {_origin(url)}"
        row = url_transport(url)
        if row is not None:
            marks = "websocket" * row.is_websocket + "login" * row.has_login
            yield f"    {row.name} {row.http_scheme} {marks} {_short(http_url(url))}"
        elif http_url(url) != url:
            yield f"    changed: {http_url(url)}"


def _origin(url: str) -> str:
    try:
        return f"{origin_of(url)} {origin_text(url)}"
    except ValueError:  # of the standard library: its text depends on the version
        return "!"


def _parts(url: Url) -> str:
    target, authority = url.target.decode(), url.authority.decode()
    return f"{_short(str(url))} {url.origin} {authority} {_short(target)}"


def _proxy(url: Url, credentials: str | None) -> str:
    return f"{_parts(url)} {credentials!r}"


def _of_pages() -> Iterator[str]:
    for url in _URLS:
        yield _tried(_short(url), _page, url)


def _page(url: str) -> str:
    page = ElicitationUrl.parse(url)
    names = f"{page.scheme} {page.host} {page.unicode_host} {page.port}"
    return "\n      ".join((names, *page.warnings))


def _of_addresses() -> Iterator[str]:
    checks = {
        "public": is_public_address,
        "private": is_private_address,
        "loopback": is_loopback_host,
        "local": is_local_host,
        "internal": is_internal_name,
    }
    for address in _ADDRESSES:
        found = [name for name, check in checks.items() if check(address)]
        yield f"  {address}: {', '.join(found) or '-'}"
    loopback = [_short(url) for url in _URLS if "[" not in url and is_loopback_url(url)]
    yield f"  URLs on loopback: {' '.join(loopback)}"


def _of_fetches() -> Iterator[str]:
    addresses = (
        "8.8.8.8",
        "10.0.0.1",
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "fd00:ec2::1",
        "e.com",
    )
    for address in addresses:
        may = [
            f"{'loopback ' * local}{'private' * private}".strip() or "plain"
            for local, private in product((False, True), repeat=2)
            if may_fetch(address, allow_loopback=local, allow_private=private)
        ]
        yield f"  {address}: {', '.join(may) or '-'}; by default {_by_default(address)}"
        named = [name for name, each in _PUBLISHERS.items() if may_fetch_named(address, each)]
        yield f"    of publishers: {', '.join(named) or '-'}"


def _by_default(address: str) -> list[bool]:
    return [may_fetch(address, allow_loopback=local) for local in (False, True)]


def _of_pairs() -> Iterator[str]:
    for url in _PAIRED:
        yield f"  {url!r}"
        yield f"    covers: {[each for each in _PAIRED if _covers(url, each)]}"
        for each in _PAIRED:
            target = same_origin_redirect(url, each)
            if target is not None:
                yield f"    redirected by {each!r}: {target!r}"
        for each in _PAIRED if url in ("https://e.com/a/b?x=1", "https://E.com:443/") else ():
            yield _tried(f"joined {each!r}", lambda url, each: Url.parse(url).join(each), url, each)


def _covers(url: str, other: str) -> bool:
    try:
        return covers_url(url, other)
    except ValueError:
        return False


def _of_matches(first: int, templates: tuple[str, ...]) -> Iterator[str]:
    for template in templates:
        yield f"  {template!r}, normal {normal_template(template)!r}"
        try:
            matcher = UriMatcher(UriTemplate(template))
            free = UriMatcher(matcher.template, matcher.template.variables)
        except ValueError as error:
            yield f"    ! {error}"
            continue
        optional = sorted(matcher.optional)
        yield f"    {matcher!r} {matcher.template!r} {matcher.template.variables} {optional}"
        for uri in _URIS:
            if not matcher.has_form(uri):
                continue
            found = matcher.match(uri)
            refused = matcher.find_error(uri)
            shown = str(found) if refused is None else f"! {refused}; unchecked {free.match(uri)}"
            yield f"    {_short(uri)}: {shown if len(shown) < 500 else len(shown)}"


def _of_expansions() -> Iterator[str]:
    for text in _TEMPLATES:
        try:
            template = UriTemplate(text)
        except ValueError as error:
            yield f"  ! {error}"
            continue
        yield f"  {text!r}"
        found: dict[str, None] = {}
        for values in _VALUES:
            found[_tried("", template.expand, values)] = None
        yield from found


def _of_normal_forms() -> Iterator[str]:
    for uri in _URIS_TO_NORMALIZE:
        normal = normal_uri(uri)
        yield f"  {_short(uri)}: {'=' if normal == uri else _short(str(normal))}"


def _short(text: str) -> str:
    return repr(text) if len(text) < 140 else f"{text[:20]!r}...{text[-5:]!r} ({len(text)})"


def _tried(name: str, function: Callable[..., Any], *args: Any) -> str:
    """Return the line of a function's value, or of its error."""
    try:
        return f"    {name}: {function(*args)}"
    except ValueError as error:
        return f"    {name}: ! {error}"


def kept_uses() -> dict[str, str]:
    """Return the lines in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: used(lines) for name, lines in uses_to_find().items()})
