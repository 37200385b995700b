"""The ways in which servers may read a path."""

from __future__ import annotations

import pytest

from mcp_core.host.config._url_readings import _without_dots


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b/"),
        ("/.", "/"),
        ("/..", "/"),
        ("/../..", "/"),
        ("/a/.", "/a/"),
        ("/a/./b", "/a/b"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/b/../", "/a/"),
        ("/a/b/../c", "/a/c"),
        ("/../a", "/a"),
        ("", "/"),
        (".", "/"),
        ("..", "/"),
        ("/a//..", "/a/"),
        ("/a//.", "/a//"),
        ("/...", "/..."),
        ("/.._", "/.._"),
        ("/a/.._", "/a/.._"),
        ("/._", "/._"),
        # Section 5.2.4 of RFC 3986 has this one.
        ("/a/b/c/./../../g", "/a/g"),
    ],
)
def test_path_is_read_without_its_dot_segments(path: str, expected: str) -> None:
    assert _without_dots(path) == expected
