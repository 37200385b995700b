"""Which URLs are used, which addresses are fetched, where documents are: tables."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import AuthorizationFailed
from mcp_core.auth._urls import (
    MAX_URL,
    canonical_resource,
    check_url,
    covers,
    is_local,
    is_public_address,
    issuer_metadata_urls,
    may_fetch,
    origin_of,
    resource_metadata_urls,
    root_of,
    same_origin_redirect,
    shown,
    url_fault,
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
# http on loopback is for MCP servers on loopback
LOCAL = (
    "http://localhost:1 http://127.0.0.1/ http://127.9.9.9:80/x http://[::1]:3000/x http://LOCALHOST/".split()
)
BAD = [
    "", "e.com", "//e.com", "/authorize", "https:", "https:/e.com", "https://", "https:///x", "https://:443/",
    "https://?x", "https://#x", "http://e.com", "http://localhost.e.com", "http://10.0.0.1/", "http://0.0.0.0/",
    "http://169.254.169.254/latest/meta-data/", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:8.8.8.8]/",
    "http://localhost./", "http://127.0.0.1.nip.io/",
    "javascript:alert(1)", "JavaScript:alert(1)", "javascript://e.com/%0aalert(1)", "data:text/html,x", "file:///etc/passwd",
    "vbscript:x", "ftp://e.com/", "ws://e.com/", "ssh://e.com", "mailto:a@e.com", "about:blank", "chrome://settings",
    "ms-msdt:/id", "search-ms:query=x", "calculator:", "blob:https://e.com/x", "view-source:https://e.com",
    "--flag", "-e", "--remote-allow-origins=*", "$(calc)", "`calc`", "a:&calc", "&calc", "|calc", ";calc", "calc.exe",
    "\\\\host\\share", "C:\\x.exe", "%USERPROFILE%", "~/x", ".", "..",
    "https://e.com/$(calc)", "https://e.com/?x=$(calc)", "https://e.com/`calc`", "https://e.com/|calc", "https://e.com/<x>",
    'https://e.com/"x"', "https://e.com/x y", " https://e.com/", "https://e.com/ ", "https://e.com/\\x", "https://e.com\\@f.com/",
    "https://e.com/{x}", "https://e.com/^x", "https://e.com/é", "https://é.com/", "https://e.com/\u202ex",
    "https://u@e.com/", "https://u:p@e.com/", "https://@e.com/", "https://e.com@f.com/", "https://e.com:443@f.com/",
    "https://e.com/#", "https://e.com/#x", "https://e.com/?a#b",
    "https://e.com:0/", "https://e.com:65536/", "https://e.com:x/", "https://e.com:-1/", "https://e.com:4 43/",
    "https://[fe80::1%25eth0]/", "https://[2606:4700::1%1]/", "https://[::1", "https://::1/", "https://[v1.x]/", "https://[e.com]/", "https://-e.com/", "https://.e.com/", "https://e..com:x/",
    "https://%65.com/", "https://e.com%00.f.com/", "https://e,com/", "https://(e)/", "https://*/",
    "https://e.com/" + "x" * (MAX_URL - 13), "https://e.com/" + "x" * 65536,
    "ｈｔｔｐｓ://e.com", "https：//e.com", "https://e。com/",
]  # fmt: skip
# a character that belongs nowhere, in every place of a URL
CONTROL = [chr(c) for c in (*range(0x21), 0x7F, 0x80, 0x85, 0xA0, 0xAD, 0x200B, 0x2028, 0x2029, 0xFEFF)]
PLACES = ("{}https://e.com/", "https{}://e.com/", "https://e{}.com/", "https://e.com{}/", "https://e.com/{}x",
          "https://e.com/?x={}", "https://e.com/{}", "ht{}tps://e.com/", "https://e.com:4{}43/", "https:{}//e.com/")  # fmt: skip
PLANTED = [place.format(char) for char, place in product(CONTROL, PLACES)]


@pytest.mark.requirement("AU-2", "AU-4")
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("url", GOOD)
def test_urls_that_are_used(url: str, local: bool) -> None:
    assert url_fault(url, local=local) is None
    assert check_url(url, "it", local=local) == url


@pytest.mark.requirement("AU-2", "AU-4", "AG-6")
@pytest.mark.parametrize("url", LOCAL)
def test_http_is_for_loopback_if_the_server_is_there(url: str) -> None:
    assert is_local(url)
    assert url_fault(url, local=True) is None
    assert url_fault(url, local=False) == "is not https"


@pytest.mark.requirement("AU-1", "AU-2", "AU-4")
def test_urls_that_are_not_used() -> None:
    assert len(BAD + PLANTED) >= 500
    assert [
        (url, local) for url in BAD + PLANTED for local in (False, True) if not url_fault(url, local=local)
    ] == []


@given(
    st.text()
    | st.text().map(lambda text: f"https://{text}")
    | st.binary().map(lambda raw: raw.decode("latin-1"))
)
def test_no_text_raises(url: str) -> None:
    if url_fault(url, local=True) is None:
        assert url.lower().startswith(("https://", "http://"))
        assert url.isascii()
        assert url.isprintable()
        assert not set(url) & set(" \"'`\\<>{}|^#") - {"'"}
        canonical_resource(url)
        resource_metadata_urls(url)
        issuer_metadata_urls(url)
        assert covers(url, url)
    shown(url)


def test_the_error_names_the_url_but_not_its_secrets() -> None:
    with pytest.raises(AuthorizationFailed) as caught:
        check_url("https://user:hunter2@e.com/x?token=hunter3", "the token_endpoint", local=False)
    assert str(caught.value).startswith("the token_endpoint contains a user name: '...@e.com/x'.")
    assert shown("x\r\n" * 100) == repr(("x\r\n" * 100)[:120] + "...")


PUBLIC = """
8.8.8.8 1.1.1.1 9.255.255.255 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.167.1.1 223.255.255.255
2600:: 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808
""".split()
LOOPBACK = "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1".split()
NOT_PUBLIC = """
0.0.0.0 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.8
192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255 :: fe80::1 fe80::1%eth0 febf::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2001::1 2001:10::1 2002:7f00:1::
2002:808:808:: 3fff::1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b:1::1 ::10.0.0.1 100::1
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
def test_public_addresses(address: str) -> None:
    assert is_public_address(address)
    assert may_fetch(address, local=False)
    assert may_fetch(address, local=True)


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize("address", [*NOT_PUBLIC, *LOOPBACK, *NO_ADDRESS])
def test_other_addresses(address: str) -> None:
    assert not is_public_address(address)
    assert not may_fetch(address, local=False)
    assert may_fetch(address, local=True) == (address in (*LOOPBACK, "localhost"))


CANONICAL = [
    ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
    ("https://mcp.example.com", "https://mcp.example.com"),
    ("https://mcp.example.com/", "https://mcp.example.com"),
    ("HTTPS://MCP.Example.COM:8443/Server/MCP", "https://mcp.example.com:8443/Server/MCP"),
    ("https://e.com/mcp/", "https://e.com/mcp/"),
    ("https://e.com/mcp?tenant=A#top", "https://e.com/mcp?tenant=A"),
]


@pytest.mark.requirement("AF-4")
@pytest.mark.parametrize(("url", "resource"), CANONICAL)
def test_the_canonical_resource(url: str, resource: str) -> None:
    assert canonical_resource(url) == resource
    assert resource.startswith(root_of(url))


COVERS = [
    ("https://e.com/mcp", "https://e.com/mcp", True),
    ("https://e.com/mcp/", "https://e.com/mcp", True),
    ("https://e.com", "https://e.com/mcp", True),
    ("https://e.com/", "https://e.com/mcp", True),
    ("https://E.COM:443/a", "https://e.com/a/b", True),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=1", True),
    ("https://e.com/mcp", "https://e.com/mcp?x=1", True),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=2", False),
    ("https://e.com/mc", "https://e.com/mcp", False),
    ("https://e.com/mcp/deeper", "https://e.com/mcp", False),
    ("https://e.com/other", "https://e.com/mcp", False),
    ("https://f.com/mcp", "https://e.com/mcp", False),
    ("https://e.com.f.com/mcp", "https://e.com/mcp", False),
    ("http://e.com/mcp", "https://e.com/mcp", False),
    ("https://e.com:8443/mcp", "https://e.com/mcp", False),
    ("https://e.com:x/mcp", "https://e.com/mcp", False),
]


@pytest.mark.requirement("AC-7", "AF-4")
@pytest.mark.parametrize(("resource", "url", "yes"), COVERS)
def test_what_a_published_resource_covers(resource: str, url: str, yes: bool) -> None:
    assert covers(resource, url) is yes


WELL_KNOWN = [
    ("https://e.com/public/mcp", ["/public/mcp", ""]),
    ("https://e.com", [""]),
    ("https://e.com/", [""]),
    ("https://e.com/mcp?x=1", ["/mcp?x=1", ""]),
    ("https://e.com:8443/mcp", ["/mcp", ""]),
]


@pytest.mark.requirement("AC-5")
@pytest.mark.parametrize(("url", "paths"), WELL_KNOWN)
def test_where_the_metadata_of_a_resource_is(url: str, paths: list[str]) -> None:
    root = "/".join(url.split("/")[:3])
    expected = [f"{root}/.well-known/oauth-protected-resource{path}" for path in paths]
    assert resource_metadata_urls(url) == expected


ISSUERS = [
    ("https://a.com", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
    ("https://a.com/", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
    *(
        (
            f"https://a.com/tenant1{slash}",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        )
        for slash in ("", "/")
    ),
]


@pytest.mark.requirement("AC-10", "AC-11")
@pytest.mark.parametrize(("issuer", "paths"), ISSUERS)
def test_where_the_metadata_of_an_authorization_server_is(issuer: str, paths: list[str]) -> None:
    assert issuer_metadata_urls(issuer) == [f"https://a.com{path}" for path in paths]


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
def test_where_a_redirect_may_lead(location: str, target: str | None) -> None:
    assert same_origin_redirect("https://e.com/a", location) == target
    assert origin_of("https://E.com/a") == ("https", "e.com", 443)
