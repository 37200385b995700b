"""The URL of Redis: what is read, what is refused, and that nothing shows a password."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from mcp_core.adapters._redis_url import RedisUrl


@pytest.mark.parametrize(
    ("url", "shown", "parts"),
    [
        ("redis://host", "redis://host:6379", {"host": "host", "port": 6379, "database": 0}),
        ("redis://:p%40ss%2F@host:1", "redis://host:1", {"password": "p@ss/", "user": None}),
        ("redis://ada:secret@[::1]/3", "redis://[::1]:6379/3", {"user": "ada", "database": 3}),
        ("redis://host/?db=7", "redis://host:6379/7", {"database": 7}),
        ("redis://host:0/123456789", "redis://host:0/123456789", {"port": 0}),
        ("rediss://host", "rediss://host:6379", {"tls": True, "ca_file": None}),
        (
            "rediss://host?ssl_ca_certs=/ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem",
            "rediss://host:6379",
            {"ca_file": "/ca.pem", "certificate": "/c.pem", "key": "/k.pem"},
        ),
        ("unix:///run/redis.sock", "unix:///run/redis.sock", {"path": "/run/redis.sock"}),
        (
            "unix://ada:secret@/run/a%20b.sock?db=2",
            "unix:///run/a b.sock",
            {"path": "/run/a b.sock", "user": "ada", "password": "secret", "database": 2},
        ),
    ],
)
def test_url_is_read(url: str, shown: str, parts: dict[str, object]) -> None:
    found = RedisUrl.parse(url)
    assert {name: getattr(found, name) for name in parts} == parts
    assert found.shown == shown
    assert repr(found) == f"<RedisUrl {shown}>"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "begin with redis://"),
        ("http://:hunter2@host", "begin with redis://"),
        ("redis+sentinel://:hunter2@host/primary", "begin with redis://"),
        ("redis://:hunter2@", "no host"),
        ("redis://:hunter2@host:none", "cannot be read"),
        ("redis://:hunter2@[::1", "cannot be read"),
        ("redis://:hunter2@host:99999", "cannot be read"),
        ("redis://hunter2@host", "a user and no password"),
        ("redis://:hun#ter2@host", "begin|no host|cannot be read|%23"),
        ("redis://:hunter2@host#x", "it has a #"),
        ("redis://:hunter2@host/x", "number of a database"),
        ("redis://:hunter2@host/1/2", "number of a database"),
        ("redis://:hunter2@host/1234567890", "number of a database"),
        ("redis://:hunter2@host?db=", "the option db of it is unknown here, empty"),
        ("redis://:hunter2@host/²", "number of a database"),
        ("redis://:hunter2@host/1?db=2", "two numbers"),
        ("redis://:hunter2@host?db=1&db=2", "there twice"),
        ("redis://:hunter2@host?ssl_ca_certs=/ca.pem", "the option ssl_ca_certs"),
        ("rediss://:hunter2@host?ssl_cert_reqs=none", "an option of it is unknown"),
        ("rediss://:hunter2@host?ssl_keyfile=/k.pem", "without ssl_certfile"),
        ("rediss://:hunter2@host?hunter2=1", "an option of it is unknown"),
        ("unix://:hunter2@host/path", "absolute path"),
        ("unix:run/redis.sock", "absolute path"),
    ],
)
def test_other_url_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        RedisUrl.parse(url)
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_part_that_a_url_lacks_has_a_default() -> None:
    """Among them no user and no TLS, and the port that Redis has."""
    common = {"user": None, "password": None, "tls": False}
    common |= {"ca_file": None, "certificate": None, "key": None}
    assert asdict(RedisUrl.parse("redis://host")) == common | {
        "host": "host",
        "port": 6379,
        "path": "",
        "database": 0,
    }
    assert asdict(RedisUrl.parse("unix:///socket")) == common | {
        "host": "",
        "port": 6379,
        "path": "/socket",
        "database": 0,
    }
