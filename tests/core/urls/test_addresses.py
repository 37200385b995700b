"""Which URLs and addresses named by a peer may be used: tables of URLs, origins and addresses."""

from __future__ import annotations

from ipaddress import IPv4Address
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.urls import (
    MAX_URL,
    covers_url,
    find_url_error,
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
    same_origin_redirect,
)

GOOD = """
https://e.com
https://e.com/
https://E.com:8443/a/b?c=d&e=f%20g
https://xn--bcher-kva.example/authorize
https://a_b.example.
https://[2001:db8::1]:8443/authorize
https://192.0.2.1/x
https://e.com/a;b=c/(d)/e'f!g*h,i@j
https://e.com/authorize?redirect=https://f.com/
https://e.com:65535/
""".split()
# Usable only if the MCP server is on loopback too.
LOCAL = (
    "http://localhost:1 http://127.0.0.1/ http://127.9.9.9:80/x http://[::1]:3000/x"
    " http://LOCALHOST/"
).split()
BAD = [
    "", "e.com", "//e.com", "/authorize", "https:", "https:/e.com", "https://", "https:///x",
    "https://:443/",
    "https://?x", "https://#x", "http://e.com", "http://localhost.e.com", "http://10.0.0.1/",
    "http://0.0.0.0/",
    "http://169.254.169.254/latest/meta-data/", "http://2130706433/", "http://0x7f.1/",
    "http://[::ffff:8.8.8.8]/",
    "http://localhost./", "http://127.0.0.1.nip.io/",
    "javascript:alert(1)", "JavaScript:alert(1)", "javascript://e.com/%0aalert(1)",
    "data:text/html,x", "file:///etc/passwd",
    "vbscript:x", "ftp://e.com/", "ws://e.com/", "ssh://e.com", "mailto:a@e.com", "about:blank",
    "chrome://settings",
    "ms-msdt:/id", "search-ms:query=x", "calculator:", "blob:https://e.com/x",
    "view-source:https://e.com",
    "--flag", "-e", "--remote-allow-origins=*", "$(calc)", "`calc`", "a:&calc", "&calc", "|calc",
    ";calc", "calc.exe",
    "\\\\host\\share", "C:\\x.exe", "%USERPROFILE%", "~/x", ".", "..",
    "https://e.com/$(calc)", "https://e.com/?x=$(calc)", "https://e.com/`calc`",
    "https://e.com/|calc", "https://e.com/<x>",
    'https://e.com/"x"', "https://e.com/x y", " https://e.com/", "https://e.com/ ",
    "https://e.com/\\x", "https://e.com\\@f.com/",
    "https://e.com/{x}", "https://e.com/^x", "https://e.com/é", "https://é.com/",
    "https://e.com/\u202ex",
    "https://u@e.com/", "https://u:p@e.com/", "https://@e.com/", "https://e.com@f.com/",
    "https://e.com:443@f.com/",
    "https://e.com/#", "https://e.com/#x", "https://e.com/?a#b",
    "https://e.com:0/", "https://e.com:65536/", "https://e.com:x/", "https://e.com:-1/",
    "https://e.com:4 43/",
    "https://[fe80::1%25eth0]/", "https://[2606:4700::1%1]/", "https://[::1", "https://::1/",
    "https://[v1.x]/", "https://[e.com]/", "https://-e.com/", "https://.e.com/",
    "https://e..com:x/",
    "https://%65.com/", "https://e.com%00.f.com/", "https://e,com/", "https://(e)/", "https://*/",
    "https://e.com/" + "x" * (MAX_URL - 13), "https://e.com/" + "x" * 65536,
    "ｈｔｔｐｓ://e.com", "https：//e.com", "https://e。com/",
]  # fmt: skip
# A character that no URL may have, at every place of a URL.
CONTROL = [
    chr(c) for c in (*range(0x21), 0x7F, 0x80, 0x85, 0xA0, 0xAD, 0x200B, 0x2028, 0x2029, 0xFEFF)
]
PLACES = (
    "{}https://e.com/",
    "https{}://e.com/",
    "https://e{}.com/",
    "https://e.com{}/",
    "https://e.com/{}x",
    "https://e.com/?x={}",
    "https://e.com/{}",
    "ht{}tps://e.com/",
    "https://e.com:4{}43/",
    "https:{}//e.com/",
)
PLANTED = [place.format(char) for char, place in product(CONTROL, PLACES)]


@pytest.mark.requirement("AU-2", "AU-4")
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("url", GOOD)
def test_url_error_usable_url_returns_no_error(url: str, local: bool) -> None:
    assert find_url_error(url, allow_loopback=local) is None


@pytest.mark.requirement("AU-2", "AU-4", "AG-6")
@pytest.mark.parametrize("url", LOCAL)
def test_url_error_http_on_loopback_needs_local_server(url: str) -> None:
    assert is_loopback_url(url)
    assert find_url_error(url, allow_loopback=True) is None
    assert find_url_error(url, allow_loopback=False) == "is not https"


@pytest.mark.requirement("AU-1", "AU-2", "AU-4")
def test_url_error_bad_url_is_named_for_every_entry() -> None:
    assert len(BAD + PLANTED) >= 500
    assert [
        (url, local)
        for url in BAD + PLANTED
        for local in (False, True)
        if not find_url_error(url, allow_loopback=local)
    ] == []


@given(
    st.text()
    | st.text().map(lambda text: f"https://{text}")
    | st.binary().map(lambda raw: raw.decode("latin-1"))
)
def test_url_error_any_text_does_not_raise(url: str) -> None:
    if find_url_error(url, allow_loopback=True) is None:
        assert url.lower().startswith(("https://", "http://"))
        assert url.isascii()
        assert url.isprintable()
        assert not set(url) & set(" \"'`\\<>{}|^#") - {"'"}


PUBLIC = """
8.8.8.8 1.1.1.1 9.255.255.255 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.167.1.1
223.255.255.255 2600:: 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808
""".split()
LOOPBACK = "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1".split()
NOT_PUBLIC = """
0.0.0.0 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 169.254.169.254 169.254.0.1 172.16.0.1
172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1
203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: fe80::1 fe80::1%eth0 febf::1
fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2001::1 2001:10::1 2002:7f00:1:: 2002:808:808:: 3fff::1
::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b:1::1 ::10.0.0.1 100::1
4000::1
""".split()
NO_ADDRESS = [
    "",
    "localhost",
    "e.com",
    "2130706433",
    "0x7f000001",
    "127.1",
    "0177.0.0.1",
    "[::1]",
    "1.2.3.4/32",
    "1.2.3.4 ",
]


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_may_be_fetched(address: str) -> None:
    assert is_public_address(address)
    assert may_fetch(address, allow_loopback=False)
    assert may_fetch(address, allow_loopback=True)


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize("address", [*NOT_PUBLIC, *LOOPBACK, *NO_ADDRESS])
def test_other_address_may_be_fetched_only_on_loopback(address: str) -> None:
    assert not is_public_address(address)
    assert not may_fetch(address, allow_loopback=False)
    assert may_fetch(address, allow_loopback=True) == (address in (*LOOPBACK, "localhost"))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((address, True) for address in LOOPBACK),
        ("localhost", True),
        ("localhost.", False),
        ("x.localhost", False),
        ("[::1]", False),
        ("128.0.0.1", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_loopback_host_is_name_or_address(host: str, loopback: bool) -> None:
    assert is_loopback_host(host) is loopback


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((address, True) for address in LOOPBACK),
        ("localhost", True),
        ("localhost.", True),
        ("x.localhost", True),
        ("x.localhost.", True),
        # The system connects it to 127.0.0.1, and a proxy would connect it to itself.
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("xlocalhost", False),
        ("localhost.example", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_local_host_is_this_machine(host: str, local: bool) -> None:
    assert is_local_host(host) is local


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("vault", True),
        ("Vault.", True),
        ("metadata.google.internal", True),
        ("METADATA.GOOGLE.INTERNAL.", True),
        ("printer.local", True),
        ("db.default.svc", True),
        ("db.default.svc.cluster.local", True),
        ("router.home.arpa", True),
        ("wiki.corp", True),
        ("x.localhost", True),
        ("as.example.com", False),
        ("internal.example.com", False),
        ("local.example", False),
        ("corp.example.", False),
        ("xn--bcher-kva.example", False),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
    ],
)
def test_internal_name_is_never_public(name: str, internal: bool) -> None:
    assert is_internal_name(name) is internal


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("10.0.0.1", True),
        ("172.16.0.1", True),
        ("192.168.1.1", True),
        ("100.64.0.1", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("fe80::1", False),
        ("8.8.8.8", False),
        ("x", False),
    ],
)
def test_private_address_may_be_fetched_by_private_server(address: str, private: bool) -> None:
    assert is_private_address(address) is private
    assert may_fetch(address, allow_loopback=False, allow_private=True) is (
        private or address == "8.8.8.8"
    )


# The services of clouds for their own machines, in each form in which IPv6 carries an IPv4 address.
CLOUD_4 = "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192".split()
CLOUD_6 = """
fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fe80::a9fe:a9fe
""".split()


def forms(address: str) -> list[str]:
    """Return an IPv4 address, and IPv6 ones that contain it."""
    ip = IPv4Address(address)
    high, low = divmod(int(ip), 2**16)
    inside = f"{high:x}:{low:x}"
    return [
        address,
        f"::ffff:{address}",
        f"::ffff:{inside}",
        f"::{inside}",
        f"64:ff9b::{inside}",
        f"64:ff9b:1::{inside}",
        f"2002:{inside}::1",
        f"2001:0:{inside}::",
        f"2001::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
    ]


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize("address", [*(f for ip in CLOUD_4 for f in forms(ip)), *CLOUD_6])
def test_service_of_a_cloud_is_neither_public_nor_private(address: str) -> None:
    assert not is_public_address(address)
    assert not is_private_address(address)
    assert not may_fetch(address, allow_loopback=True, allow_private=True)
    for publisher in (["93.184.216.34"], ["10.1.2.3"], ["127.0.0.1"], [address], []):
        assert not may_fetch_named(address, publisher)


@pytest.mark.parametrize(
    "address", ["168.63.129.15", "168.63.129.17", "::ffff:168.63.129.17", "64:ff9b::a83f:8111"]
)
def test_neighbour_of_a_service_of_a_cloud_is_public(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize("address", ["100.100.100.201", "fd00:ec3::1", "fd20:ce::253"])
def test_neighbour_of_a_service_of_a_cloud_is_private(address: str) -> None:
    assert is_private_address(address)


WORLD, HOME, HERE, LINK = "93.184.216.34", "10.1.2.3", "127.0.0.1", "169.254.169.254"


@pytest.mark.parametrize(
    ("publisher", "allowed"),
    [
        ([], {WORLD}),
        ([WORLD], {WORLD}),
        ([WORLD, HOME], {WORLD}),
        ([WORLD, HERE], {WORLD}),
        ([HOME], {WORLD, HOME}),
        (["fd00::1"], {WORLD, HOME}),
        ([HOME, LINK], {WORLD, HOME}),
        ([HERE], {WORLD, HOME, HERE}),
        (["::1", HERE], {WORLD, HOME, HERE}),
        ([HERE, HOME], {WORLD, HOME}),
        ([LINK], {WORLD}),
        (["not an address"], {WORLD}),
    ],
)
def test_named_address_stays_in_the_network_of_its_publisher(
    publisher: list[str], allowed: set[str]
) -> None:
    assert {each for each in (WORLD, HOME, HERE, LINK) if may_fetch_named(each, publisher)} == (
        allowed
    )


@pytest.mark.requirement("AU-3")
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "https://e.com/b"),
        ("https://E.com:443/c", "https://E.com:443/c"),
        ("https://f.com/", None),
        ("http://e.com/", None),
        ("//f.com/x", None),
        ("https://e.com:x/", None),
        ("https://[", None),
        ("javascript:x", None),
    ],
)
def test_redirect_to_other_origin_has_no_target(location: str, target: str | None) -> None:
    assert same_origin_redirect("https://e.com/a", location) == target


@pytest.mark.parametrize(
    ("resource", "url", "covered"),
    [
        ("https://e.com/mcp", "https://e.com/mcp", True),
        ("https://e.com/mcp", "https://E.com:443/mcp/", True),
        ("https://e.com/mcp/", "https://e.com/mcp", True),
        ("https://e.com/mcp", "https://e.com/mcp/a?b=c", True),
        ("https://e.com", "https://e.com/anything", True),
        ("https://e.com/", "https://e.com/", True),
        ("https://e.com/mcp", "https://e.com/mcp2", False),
        ("https://e.com/mcp", "https://e.com/", False),
        ("https://e.com/mcp", "https://e.com/MCP", False),
        ("https://e.com/mcp", "https://e.com/mcp;a", False),
        ("https://e.com/mcp", "https://e.com:8443/mcp", False),
        ("https://e.com/mcp", "http://e.com/mcp", False),
        ("https://e.com/mcp?t=1", "https://e.com/mcp/?t=1", True),
        ("https://e.com/mcp?t=1", "https://e.com/mcp?t=2", False),
        ("https://e.com/mcp?t=1", "https://e.com/mcp", False),
    ],
)
def test_resource_covers_urls_at_and_below_its_path(resource: str, url: str, covered: bool) -> None:
    assert covers_url(resource, url) is covered


@pytest.mark.parametrize(
    ("url", "origin", "root"),
    [
        ("https://E.com/a", ("https", "e.com", 443), "https://e.com"),
        ("HTTP://e.com:8080/a?b", ("http", "e.com", 8080), "http://e.com:8080"),
        ("https://[::1]:443", ("https", "::1", 443), "https://[::1]:443"),
        ("ftp://e.com/", ("ftp", "e.com", 0), "ftp://e.com"),
    ],
)
def test_origin_has_port_of_scheme(url: str, origin: tuple[str, str, int], root: str) -> None:
    assert origin_of(url) == origin
    assert origin_text(url) == root


def test_origin_of_unreadable_port_raises() -> None:
    with pytest.raises(ValueError, match="Port"):
        origin_of("https://e.com:x/")
