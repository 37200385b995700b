"""How secrets are recognized: by a name, by the last word of a name, by looking random."""

from __future__ import annotations

import base64
import random
import uuid

import pytest

from mcp_core._secret_patterns import is_plain_value, is_secret_name, looks_random


@pytest.mark.parametrize(
    "name",
    [
        # by a word anywhere
        *(
            "GITHUB_TOKEN",
            "accessToken",
            "tokens",
            "X-Api-Key",
            "apikey",
            "API_KEY_2",
            "privateKey",
        ),
        *(
            "AccessKeyId",
            "DB_PASSWORD",
            "passwd",
            "passphrase",
            "passcode",
            "PWD_FILE",
            "clientSecret",
        ),
        *("credentials", "Authorization", "proxy-authorization", "Cookie", "set-cookie", "bearer"),
        *("otp", "user_otp", "pin", "x-pin-code"),
        # by the last word
        *(
            "key",
            "Key",
            "KEY",
            "x-functions-key",
            "Ocp-Apim-Subscription-Key",
            "DD-APPLICATION-KEY",
        ),
        *(
            "OPENAI_KEY",
            "accountKey",
            "primaryKey",
            "x-request-key",
            "license.key",
            "KEY_2",
            "key2",
        ),
        *("x-auth", "basicAuth", "OAuth", "auth", "SMTP_PASS", "dbPass", "DBPass", "GITLAB_PAT"),
        *("pat", "x-jwt", "userJwt", "SENTRY_DSN", "dsn", "sig", "x-hub-sig"),
        # a plain ending says nothing about the rest
        *("token_cache_key", "secret-public-key", "public_key_secret"),
    ],
)
def test_name_of_a_secret_is_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "HOME", "PATH", "KEYBOARD", "keyboard", "MONKEY", "monkey", "bypass", "compass"),
        *("author", "x-author", "keys", "pattern", "design", "mcp-session-id", "auth_mode"),
        *("content-type", "signature_version", "opinion", "spin"),
        # endings with a key that opens nothing
        *("Idempotency-Key", "Sec-WebSocket-Key", "publicKey", "ssh_public_key", "PUBLIC_KEY"),
        *("cache-key", "cacheKey", "Surrogate-Key", "foreign_key", "partitionKey", "sort_key"),
    ],
)
def test_name_of_something_else_is_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        *("9f8e7d6c5b4a", "AbC123xyz9Qw", "a1b2c3d4", "deadbeef1234", "JBSWY3DPEHPK3PXP"),
        *(
            "0b0f4a3e-6f0c-4b3a-9d52-1f2e3d4c5b6a",
            "123456789012",
            "mcp-9f8e7d6c5b4a",
            "p4ssw0rd123",
        ),
        "x9-Kd_03-aQ_zz7",
    ],
)
def test_random_text_looks_random(text: str) -> None:
    assert looks_random(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "mcp", "messages", "server42", "my-server-name", "2025-11-25", "20251125", "v1.2.3"),
        *("oauth-protected-resource", "oauth2callback", "i18nmessages", "x86_64", "getUserByID"),
        *("production-eu-west-1", "2025-11-25T10-15-00Z", "test.cpython-311.pyc", "1700000000"),
        *("MyServerName", "AbC123", "v2beta1", "s3bucket"),
    ],
)
def test_name_version_or_date_does_not_look_random(text: str) -> None:
    assert not looks_random(text)


def test_nearly_every_token_looks_random() -> None:
    numbers = random.Random(1)
    tokens = [
        token
        for _ in range(300)
        for data in [numbers.randbytes(16)]
        for token in (
            data.hex(),
            str(uuid.UUID(bytes=data)),
            base64.urlsafe_b64encode(data).decode().rstrip("="),
        )
    ]
    missed = [token for token in tokens if not looks_random(token)]
    assert len(missed) < len(tokens) / 50


def test_long_text_is_judged_in_linear_time() -> None:
    assert not looks_random("a-b_" * 100_000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((each, True) for each in ("production", "WARNING", "/home/ann/src", "~/x", "C:\\x y")),
        *((each, True) for each in ("1.2.3", "2025-11-25", "./data")),
        *(
            (each, False)
            for each in ("hunter2", "/s/9f8e7d6c5b4a", "postgres://a:b@c/d", "plum pie")
        ),
    ],
)
def test_plain_value_is_recognized(value: str, expected: bool) -> None:
    assert is_plain_value(value) is expected
