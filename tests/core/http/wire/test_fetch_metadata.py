"""Fetch metadata: whose page has caused a request, and which requests are visits."""

from __future__ import annotations

import pytest

from mcp_core.http.wire._fetch_metadata import is_foreign_fetch, is_visit, sent_by_foreign_page

SITES = [
    (None, False),
    (b"none", False),
    (b"same-origin", False),
    (b"same-site", True),
    (b"cross-site", True),
    (b"", True),
    (b"None", True),
    (b"none, none", True),
    (b"none;a=b", True),
    (b'"none"', True),
]


@pytest.mark.parametrize(("site", "is_foreign"), SITES)
def test_only_two_sites_are_not_foreign(site: bytes | None, is_foreign: bool) -> None:
    assert is_foreign_fetch(site) is is_foreign
    headers = [] if site is None else [(b"sec-fetch-site", site)]
    assert sent_by_foreign_page(headers) is is_foreign
    # With an `Origin` that one decides.
    assert not sent_by_foreign_page([*headers, (b"origin", b"null")])


def test_repeated_site_is_foreign() -> None:
    assert sent_by_foreign_page([(b"sec-fetch-site", b"none")] * 2)


@pytest.mark.parametrize(
    ("method", "mode", "dest", "expected"),
    [
        (b"GET", b"navigate", b"document", True),
        (b"HEAD", b"navigate", b"document", True),
        (b"POST", b"navigate", b"document", False),
        (b"get", b"navigate", b"document", False),
        (b"GET", b"navigate", b"iframe", False),
        (b"GET", b"navigate", None, False),
        (b"GET", b"no-cors", b"document", False),
        (b"GET", None, b"document", False),
        (b"GET", b"navigate, navigate", b"document", False),
    ],
)
def test_visit_is_a_navigation_of_the_whole_window(
    method: bytes, mode: bytes | None, dest: bytes | None, expected: bool
) -> None:
    assert is_visit(method, mode, dest) is expected
