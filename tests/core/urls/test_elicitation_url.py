"""Pages that a server sends the user to: the host as it is reached, warnings, and refusals."""

from __future__ import annotations

import re

import pytest

from mcp_core.urls import ElicitationUrl, find_url_error

PUNYCODE = "The name of this host is in Punycode (xn--): it reads "
IMITATION = ". It may imitate another name."
OWN = "This page is on your own machine."
ADDRESS = "This host is an IP address, which does not say whose page it is."
NOT_PUBLIC = "This address is not on the public internet."
PLAIN = "What you enter on this page is not encrypted."

PAGES: list[tuple[str, str, str, list[str]]] = [
    # a URL, its host, the host in Unicode, the warnings
    ("https://example.com/login?next=https://a.b/", "example.com", "example.com", []),
    ("HTTPS://Bank.Example.COM:8443/#a", "bank.example.com", "bank.example.com", []),
    ("https://example.com.", "example.com.", "example.com.", []),
    ("https://my_host.example", "my_host.example", "my_host.example", []),
    ("http://example.com", "example.com", "example.com", [PLAIN]),
    (
        "https://www.xn--pple-43d.com/",
        "www.xn--pple-43d.com",
        "www.\u0430pple.com",
        [f"{PUNYCODE}www.\u0430pple.com, with letters of Cyrillic and Latin{IMITATION}"],
    ),
    (
        "https://XN--bcher-KVA.example",
        "xn--bcher-kva.example",
        "bücher.example",
        [f"{PUNYCODE}bücher.example, with letters of Latin{IMITATION}"],
    ),
    ("http://localhost:8000/", "localhost", "localhost", [OWN]),
    ("https://api.localhost./", "api.localhost.", "api.localhost.", [OWN]),
    ("http://127.0.0.1/", "127.0.0.1", "127.0.0.1", [OWN]),
    ("http://[::1]:3000/", "::1", "::1", [OWN]),
    ("http://[::ffff:7f00:1]/", "127.0.0.1", "127.0.0.1", [OWN]),
    ("https://[2606:4700:0:0::1111]/", "2606:4700::1111", "2606:4700::1111", [ADDRESS]),
    ("https://8.8.8.8/", "8.8.8.8", "8.8.8.8", [ADDRESS]),
    ("https://192.168.0.1/", "192.168.0.1", "192.168.0.1", [ADDRESS, NOT_PUBLIC]),
    (
        "http://169.254.169.254/latest",
        "169.254.169.254",
        "169.254.169.254",
        [ADDRESS, NOT_PUBLIC, PLAIN],
    ),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("url", "host", "unicode_host", "warnings"), PAGES)
def test_elicitation_url_names_host_as_it_is_reached(
    url: str, host: str, unicode_host: str, warnings: list[str]
) -> None:
    page = ElicitationUrl.parse(url)
    assert (page.text, page.host, page.unicode_host) == (url, host, unicode_host)
    assert page.scheme in ("http", "https")
    assert list(page.warnings) == warnings


def test_elicitation_url_port_is_that_of_the_scheme_by_default() -> None:
    urls = ("http://a", "https://a", "http://a:8")
    assert [ElicitationUrl.parse(f"{url}/").port for url in urls] == [80, 443, 8]


NUMBER = "has no valid host: it is a number"
AMBIGUOUS = [
    # a URL, and a part of the reason; "" if the reason depends on the release of Python
    # numbers that browsers read as IPv4 addresses
    ("http://2130706433/", NUMBER),
    ("http://0x7f000001/", NUMBER),
    ("http://0X7F.1/", NUMBER),
    ("http://127.1/", NUMBER),
    ("http://0177.0.0.1/", NUMBER),
    ("http://127.0.0.1./", NUMBER),
    ("http://1.2.3.4.5/", NUMBER),
    ("http://256.1.1.1/", NUMBER),
    ("http://bank.example.0x7f000001/", NUMBER),
    ("http://0x/", NUMBER),
    ("https://%31%32%37.0.0.1/", "it is percent-encoded"),
    ("https://bank%2eexample/", "it is percent-encoded"),
    ("https://bank.example%00.evil.example/", "it is percent-encoded"),
    ("https://bank.com@evil.example/", "contains a user name"),
    ("https://bank.com:443@evil.example/", "contains a user name"),
    ("https://@evil.example/", "contains a user name"),
    ("https://bank.com\\@evil.example/", "has characters"),
    ("https://bank.com\\.evil.example/", "has characters"),
    ("https://b\u0430nk.com/", "has characters"),
    ("https://bank.com\u3002evil.example/", "has characters"),
    ("https://bank.com\t.evil.example/", "has characters"),
    ("https://bank.com/\u202emoc.live", "has characters"),
    ("https://bank.com/$(reboot)", "has characters"),
    ("https://bank.com[::1]/", ""),
    ("https://[::1]bank.com/", ""),
    ("https://[::1%25eth0]/", "no IPv6 address is in its brackets"),
    ("https://[bank.com]/", ""),
    ("https://bank..com/", "has no valid host"),
    ("https://-bank.com/", "has no valid host"),
    ("https://bank.com~.evil.example/", "has no valid host"),
    ("https://" + "a" * 64 + ".com/", "has no valid host"),
    ("https://" + "a." * 127 + "com/", "has no valid host"),
    ("https:///bank.com/", "has no valid host"),
    ("https://bank.com:0/", "has no valid host"),
    ("https://bank.com:65536/", "is not a URL"),
    ("https://bank.com:8 0/", "has characters"),
    ("https://xn--a/", "Punycode (xn--) is invalid"),
    ("https://xn--abc-.com/", "has no valid host"),
    ("https://xn--9999999999.com/", "Punycode (xn--) is invalid"),
    ("ftp://bank.com/", "is neither https nor http"),
    ("https://bank.com/" + "a" * 8192, "is longer than 8192 characters"),
    ("", "has characters"),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("url", "reason"), AMBIGUOUS)
def test_elicitation_url_ambiguous_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason) if reason else None):
        ElicitationUrl.parse(url)


# The browser opens URLs of OAuth too.
@pytest.mark.parametrize("url", [url for url, reason in AMBIGUOUS if "Punycode" not in reason])
def test_oauth_url_ambiguous_is_refused(url: str) -> None:
    assert find_url_error(url.replace("http:", "https:"), allow_loopback=True) is not None
