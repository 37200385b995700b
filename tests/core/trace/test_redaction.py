"""Redaction of traces: credentials of every carrier, and the parts of messages that are secrets."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core._secret_patterns import SECRET_FORM
from mcp_core.http.wire._mcp_headers import decode_value, encode_value
from mcp_core.trace import (
    HttpHead,
    Redactor,
    SseFields,
    TraceLine,
    TruncatedMessage,
    WebSocketClose,
    _redaction,
    encode_line,
    read_line,
)
from tests.core.trace.redactions import kept_redactions, redactions, redactions_of

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = b"k" * 32
ID = "0f5e2c1a-3b7d-4c1e-9a55-0123456789ab"


def redact(raw: Any, *, pointers: tuple[str, ...] = (), redactor: Redactor | None = None) -> Any:
    """Return the redacted line of a message; texts stand for themselves."""
    redactor = redactor or Redactor(KEY, pointers)
    text = raw if isinstance(raw, str) else json.dumps(raw)
    return redactor.redact_line(TraceLine(t=0, sender="client", raw=text))


def redact_json(raw: Any, *pointers: str, redactor: Redactor | None = None) -> Any:
    return json.loads(redact(raw, pointers=pointers, redactor=redactor).raw)


def test_message_without_secrets_is_the_same_line() -> None:
    line = TraceLine(t=0, raw='{"method":"tools/call","params":{"arguments":{"password":"x"}}}')
    assert Redactor(KEY).redact_line(line) is line


def test_truncated_message_keeps_its_digest_if_nothing_is_hidden() -> None:
    truncated = TruncatedMessage(size=100, sha256="0f")
    for text in (
        *('{"text":"about taskId', '{"result":{"action":1,"text":"', '{"taskId":1,"text":"'),
        '{"taskId":"t1","text":"',
    ):
        line = TraceLine(t=0, raw=text, truncated=truncated)
        assert Redactor(KEY).redact_line(line) is line


# -- Pseudonyms ------------------------------------------------------------------------------------


def test_line_with_a_head_without_secrets_is_the_same_object() -> None:
    """Two lines with equal heads, the second one by the remembered head."""
    redactor = Redactor(KEY)
    for _ in range(2):
        headers = (("content-type", "application/json"), ("x-plain", "a"))
        head = HttpHead(method="POST", target="/mcp", headers=headers)
        line = TraceLine(t=0.0, sender="client", exchange=1, http=head, raw='{"jsonrpc":"2.0"}')
        assert redactor.redact_line(line) is line


def test_pseudonym_has_the_form_of_the_id() -> None:
    found = Redactor(KEY).pseudonym_of_id(ID)
    assert found != ID
    assert [i for i, each in enumerate(found) if each == "-"] == [8, 13, 18, 23]
    assert all(a.isdigit() == b.isdigit() for a, b in zip(ID, found, strict=True))


def test_pseudonym_is_stable_in_one_trace_only() -> None:
    redactor = Redactor(KEY)
    assert redactor.pseudonym_of_id(ID) == redactor.pseudonym_of_id(ID)
    assert redactor.pseudonym_of_id(ID) != redactor.pseudonym_of_id(ID[::-1])
    assert redactor.pseudonym_of_id(ID) != Redactor(b"other").pseudonym_of_id(ID)


def test_pseudonyms_beyond_the_memory_are_the_same() -> None:
    redactor = Redactor(KEY)
    first = redactor.pseudonym_of_id(ID)
    for number in range(1500):
        redactor.pseudonym_of_id(f"{ID}{number}")
    assert redactor.pseudonym_of_id(ID) == first


@pytest.mark.parametrize("id", ["1", "42", "task-1", "123456789"])
def test_id_that_can_be_guessed_is_kept(id: str) -> None:
    assert Redactor(KEY).pseudonym_of_id(id) == id


@given(st.text(max_size=100))
def test_pseudonym_of_any_text_has_its_length(text: str) -> None:
    assert len(Redactor(KEY).pseudonym_of_id(text)) == len(text)


# -- Messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"method": "tasks/get", "params": {"taskId": ID}},
        {"method": "subscriptions/listen", "params": {"notifications": {"taskIds": [ID]}}},
        {"result": {"task": {"taskId": ID, "status": "working"}}},
        [{"params": {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": ID}}}}],
    ],
)
def test_task_ids_become_the_same_pseudonym_everywhere(message: Any) -> None:
    line = redact(message)
    assert line.raw == json.dumps(message).replace(ID, Redactor(KEY).pseudonym_of_id(ID))
    assert line.redacted == ()


def test_task_id_in_a_quoted_message_is_kept() -> None:
    """It is an argument of a tool, as any other text."""
    message = {"arguments": {"text": json.dumps({"taskId": ID})}}
    assert redact_json(message) == message


@pytest.mark.parametrize("pointers", [(), ("/none",)])
def test_task_id_is_found_by_scan_and_by_search(pointers: tuple[str, ...]) -> None:
    text = '{"taskId" :\n"' + ID + '", "x":{"taskId":17},"y":{"taskId":"' + ID
    line = redact(text, pointers=pointers)
    assert line.raw.startswith('{"taskId" :\n"')
    assert ID not in line.raw
    assert '{"taskId":17}' in line.raw


def test_name_that_is_spelled_with_escapes_is_found() -> None:
    assert ID not in redact('{"task\\u0049d":"' + ID + '"}').raw


def test_request_state_becomes_a_pseudonym() -> None:
    state = "v1.abcDEF-123_"
    result = redact_json({"result": {"requestState": state, "resultType": "input_required"}})
    again = redact_json({"params": {"requestState": state}})
    assert result["result"]["requestState"] == again["params"]["requestState"] != state
    assert len(again["params"]["requestState"]) == len(state)


def test_request_state_of_another_type_is_redacted() -> None:
    line = redact({"params": {"requestState": {"user": "ann"}}})
    assert "ann" not in line.raw
    assert line.redacted == ("/params/requestState",)


def test_content_of_an_elicitation_result_is_redacted() -> None:
    line = redact({"id": 1, "result": {"action": "accept", "content": {"pin": 1234, "ok": True}}})
    assert json.loads(line.raw)["result"] == {
        "action": "accept",
        "content": {"pin": 0, "ok": False},
    }
    assert line.redacted == ("/result/content",)


def test_elicitation_result_of_a_wrong_form_is_redacted_by_its_request() -> None:
    redactor = Redactor(KEY)
    redact({"id": "e1", "method": "elicitation/create", "params": {}}, redactor=redactor)
    line = redact({"id": "e1", "result": {"content": {"pin": "9999"}}}, redactor=redactor)
    assert "9999" not in line.raw
    # Its id is free again, and the result of a tool is no secret.
    line = redact({"id": "e1", "result": {"content": {"pin": "9999"}}}, redactor=redactor)
    assert "9999" in line.raw


def test_elicitation_result_in_a_batch_is_redacted_by_its_request() -> None:
    """Each member of a batch has an id of its own."""
    redactor = Redactor(KEY)
    redact([{"id": "e1", "method": "elicitation/create", "params": {}}], redactor=redactor)
    other = {"id": "a", "result": {"tools": []}}
    line = redact([{"id": "b", "result": {"x": {"pin": "9999"}}}, other], redactor=redactor)
    assert "9999" in line.raw
    line = redact([{"id": "e1", "result": {"content": {"pin": "9999"}}}, other], redactor=redactor)
    assert "9999" not in line.raw


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":"e1","result":{"content":{"pin":"9999',
        '{"jsonrpc":"2.0","result":{"content":{"pin":"9999"',
        '"id":"e1","result":{"content":{"pin":"9999"}}}',
    ],
)
def test_elicitation_result_that_is_damaged_is_redacted(text: str) -> None:
    redactor = Redactor(KEY)
    redact({"id": "e1", "method": "elicitation/create", "params": {}}, redactor=redactor)
    assert "9999" not in redact(text, redactor=redactor).raw


def test_content_of_sampling_and_tools_is_kept() -> None:
    for result in ({"content": [{"type": "text", "text": "hi"}]}, {"role": "user", "content": {}}):
        assert redact_json({"id": 1, "result": result})["result"] == result


def test_input_responses_lose_their_content() -> None:
    responses = {"a": {"action": "accept", "content": {"pin": "9999"}}, "r": {"roots": []}}
    line = redact({"params": {"name": "t", "inputResponses": responses}})
    found = json.loads(line.raw)["params"]["inputResponses"]
    assert found["a"] == {"action": "accept", "content": {"pin": "‹redacted 4›"}}
    assert found["r"] == {"roots": []}
    assert line.redacted == ("/params/inputResponses/a/content",)


FRAGMENTS = (
    *("{", "}", "[", "]", ",", ":", '"', " ", "\\", "elicitation", '"elicitation/create"'),
    *(r'"elicitation\/create"', "elicitation/create", r'"\u0065licitation\/create"', '"id":1,'),
    *('"method":', '"url":', '"url" : {}', '"url":{}', '"url":{},"form":{}', '"url":{},"x"'),
    *('"https://u:p@h/x?y=abcdef"', '"result":{', '"action":"accept",', '"content":{"a":"b"}'),
    *('"requestState":"abcdef"', '"inputResponses":{', '"elicitation":{"form":{},"url":{}}'),
)


@given(st.lists(st.lists(st.sampled_from(FRAGMENTS)).map("".join), max_size=3))
def test_message_that_is_not_scanned_has_nothing_that_a_scan_finds(texts: list[str]) -> None:
    """The choice whether to scan a message may not change what is hidden."""
    redactor, scanner = Redactor(KEY), Redactor(KEY)
    for text in texts:
        assert redactor._redact_message(text, 1) == scanner._redact_values(text, 1)
        assert redactor._elicitations == scanner._elicitations


@pytest.mark.parametrize("capability", [{}, {"form": {}}, {"url": {}}, {"url": {}, "form": {}}])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_request_with_the_capability_of_elicitation_is_not_scanned(
    capability: dict[str, Any], separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since 2026-07-28 each request declares it, and a scan takes fifty times as long."""
    meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": capability}}
    request = {"id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "x"}}
    monkeypatch.delattr(Redactor, "_redact_values")
    line = TraceLine(t=0, raw=json.dumps(request, separators=separators))
    assert Redactor(KEY).redact_line(line) is line


def test_message_with_two_results_of_one_elicitation_is_redacted() -> None:
    redactor = Redactor(KEY)
    redact({"id": "e1", "method": "elicitation/create", "params": {}}, redactor=redactor)
    text = '{"id":"e1","result":{"content":{"name":"Ann"}},"result":{"content":{"name":"Ann"}}}'
    assert "Ann" not in redact(text, redactor=redactor).raw


def test_url_of_an_elicitation_loses_its_query() -> None:
    message = {"method": "elicitation/create", "params": {"url": "https://a.b/c?state=s3cret#x"}}
    url = redact_json(message)["params"]["url"]
    assert url.startswith("https://a.b/c?state=")
    assert "s3cret" not in url


@pytest.mark.parametrize(
    ("pointer", "message", "expected"),
    [
        ("/params/arguments/pw", {"params": {"arguments": {"pw": "abc"}}}, "‹redacted 3›"),
        ("/params/arguments/pw", [{"params": {"arguments": {"pw": "abc"}}}], "‹redacted 3›"),
        ("/a~1b/0", {"a/b": ["abc"]}, "‹redacted 3›"),
        ("/a/0", {"a": {"0": "abc"}}, "‹redacted 3›"),
    ],
)
def test_pointer_hides_its_value(pointer: str, message: Any, expected: str) -> None:
    line = redact(message, pointers=(pointer,))
    assert line.raw == json.dumps(message).replace("abc", expected)
    assert line.redacted[0].endswith(pointer)


def test_pointer_hides_headers_that_repeat_arguments() -> None:
    head = HttpHead(method="POST", target="/mcp", headers=(("mcp-param-user", "ann"),))
    line = TraceLine(t=0, http=head)
    redacted = Redactor(KEY, ["/params/arguments/user"]).redact_line(line)
    assert redacted.http is not None
    assert redacted.http.headers == (("mcp-param-user", "‹redacted 3›"),)
    kept = Redactor(KEY).redact_line(line)
    assert kept.http == head


@pytest.mark.parametrize("pointer", ["", "params", "#/params"])
def test_pointer_that_is_none_is_refused(pointer: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON pointer"):
        Redactor(KEY, [pointer])


@pytest.mark.parametrize(
    "text",
    [
        r'{"requestState":"\ud800abcdef"}',
        r'{"params":{"taskId":"\udcff0123456789ab"}}',
        r'{"inputResponses":{"\ud800":{"content":{"name":"Ann"}}}}',
        r'{"method":"elicitation/create","params":{"url":"https://a.b/\ud800?state=s3cret"}}',
    ],
)
@pytest.mark.parametrize("before", ["", "\udcff"])
def test_half_of_a_surrogate_pair_is_redacted_and_encoded(text: str, before: str) -> None:
    """JSON can have one as an escape. A line that cannot be encoded would end the recording."""
    data = (before + text).encode(errors="surrogateescape")
    line = TraceLine(t=0, data=data) if before else TraceLine(t=0, raw=text)
    redacted = Redactor(KEY).redact_line(line)
    assert redacted != line
    assert read_line(encode_line(redacted)) == redacted


def test_message_that_is_not_utf_8_is_redacted_and_keeps_its_bytes() -> None:
    data = b'\xff{"taskId":"' + ID.encode() + b'","x":"\xfe"}'
    line = Redactor(KEY).redact_line(TraceLine(t=0, sender="client", data=data))
    assert line.data is not None
    assert ID.encode() not in line.data
    assert line.data.startswith(b'\xff{"taskId":"')
    assert line.data.endswith(b'","x":"\xfe"}')


def test_digest_of_a_truncated_message_is_removed_if_it_was_redacted() -> None:
    truncated = TruncatedMessage(size=9, sha256="ab")
    line = TraceLine(t=0, raw='{"requestState":"x1"', truncated=truncated)
    redacted = Redactor(KEY).redact_line(line)
    assert redacted.truncated == TruncatedMessage(size=9)
    line = TraceLine(t=0, raw='{"a":"x1"', truncated=truncated)
    assert Redactor(KEY).redact_line(line) is line


@given(st.text())
def test_any_message_is_redacted_without_an_error(text: str) -> None:
    redactor = Redactor(KEY, ["/a"])
    assert redactor.redact_line(TraceLine(t=0, raw=text)).raw is not None


# -- Heads and URLs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("authorization", "Bearer abc", "Bearer ‹redacted 3›"),
        ("proxy-authorization", "abc", "‹redacted 3›"),
        ("cookie", "a=b", "‹redacted 3›"),
        ("set-cookie", "a=b", "‹redacted 3›"),
        ("x-api-key", "abc", "‹redacted 3›"),
        ("dpop", "abc", "‹redacted 3›"),
        ("x-my-token", "abc", "‹redacted 3›"),
        ("x-other", "hello", "hello"),
        ("x-other", "ghp_0123456789abcdefghij", "‹redacted 24›"),
        ("content-type", "application/json", "application/json"),
        ("mcp-name", ID, ID),
        ("www-authenticate", 'Bearer error="x"', 'Bearer error="x"'),
    ],
)
def test_headers_with_credentials_are_redacted(name: str, value: str, expected: str) -> None:
    head = HttpHead(status=200, headers=((name, value),))
    line = Redactor(KEY).redact_line(TraceLine(t=0, http=head))
    assert line.http is not None
    assert line.http.headers == ((name, expected),)


def test_ids_in_headers_have_the_pseudonyms_of_messages() -> None:
    redactor = Redactor(KEY)
    headers = (("mcp-method", "tasks/get"), ("mcp-name", ID), ("mcp-session-id", ID))
    line = redactor.redact_line(TraceLine(t=0, http=HttpHead(method="POST", headers=headers)))
    assert line.http is not None
    assert {value for _, value in line.http.headers[1:]} == {redactor.pseudonym_of_id(ID)}


def test_task_id_in_base64_has_the_pseudonym_of_messages() -> None:
    redactor = Redactor(KEY)
    id = f"tâche {ID}"
    name = encode_value(id).decode()
    headers = (("mcp-method", "tasks/get"), ("mcp-name", name))
    line = redactor.redact_line(TraceLine(t=0, http=HttpHead(method="POST", headers=headers)))
    assert line.http is not None
    assert decode_value(line.http.headers[1][1].encode()) == redactor.pseudonym_of_id(id)
    assert ID not in str(line)


# -- OAuth -----------------------------------------------------------------------------------------

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
NO_LOGIN = '{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"password":"x"}}}'


def body_line(
    redactor: Redactor, type: str, body: str | bytes, *, status: int = 0, exchange: int = 1
) -> TraceLine:
    head = HttpHead(
        method="" if status else "POST", status=status, headers=(("content-type", type),)
    )
    raw, data = (body, None) if isinstance(body, str) else (None, body)
    return redactor.redact_line(TraceLine(t=0, exchange=exchange, http=head, raw=raw, data=data))


@pytest.mark.parametrize(
    ("type", "body", "status"),
    [
        (FORM, "grant_type=authorization_code&code=s3cret&code_verifier=s3cret", 0),
        (f"{FORM}; charset=utf-8", "user=ann&x=s3cret", 0),
        ("multipart/form-data; boundary=a", b"--a\xff s3cret", 0),
        (JSON, '{"redirect_uris":["http://a/"],"x":"s3cret"}', 0),
        (JSON, '{"access_token" : "s3cret"}', 200),
        (JSON, '{"client_id":"a","client_secret":"s3cret"}', 201),
        ("text/html", "<input value=s3cret>", 200),
        ("text/html; charset=utf-8", "<input value=s3cret>", 299),
    ],
)
def test_body_of_a_login_is_redacted(type: str, body: str | bytes, status: int) -> None:
    line = body_line(Redactor(KEY), type, body, status=status)
    assert b"s3cret" not in encode_line(line)
    assert line.message == f"‹redacted {len(body)}›".encode()
    assert line.redacted == ("",)


def test_response_to_a_login_is_redacted() -> None:
    redactor = Redactor(KEY)
    body_line(redactor, FORM, "a=b")
    assert body_line(redactor, JSON, '{"k":"v"}', status=200, exchange=2).raw == '{"k":"v"}'
    assert body_line(redactor, JSON, '{"k":"v"}', status=200).raw == "‹redacted 9›"
    assert body_line(redactor, JSON, '{"k":"v"}', status=200).raw == '{"k":"v"}'


@pytest.mark.parametrize(
    ("type", "body", "status"),
    [
        (JSON, NO_LOGIN, 0),
        (JSON, NO_LOGIN, 200),
        ("text/html", "<p>moved</p>", 300),
        ("text/html", "<p>bad</p>", 502),
    ],
)
def test_body_without_a_login_is_kept(type: str, body: str, status: int) -> None:
    assert body_line(Redactor(KEY), type, body, status=status).raw == body


@pytest.mark.parametrize(
    ("url", "secrets", "kept"),
    [
        ("https://ann:pw@a.b/c", ["ann", "pw"], "https://redacted@a.b/c"),
        ("https://ann:p/w@a.b/c", ["ann", "p/w"], "https://redacted/a.b/c"),
        ("https://ann:p?w@a.b/c", ["ann"], "https://redacted?"),
        ("https://[::1]:80/c", [], "https://[::1]:80/c"),
        ("https://a.b/@user", [], "https://a.b/@user"),
        ("/mcp?token=s3cret&x=v4lue", ["s3cret", "v4lue"], "/mcp?token="),
        ("/mcp?s3cret", ["s3cret"], "/mcp?"),
        ("/mcp?a=b1=s3cret", ["s3cret", "b1"], "/mcp?a="),
        ("/mcp#access_token=s3cret", ["s3cret"], "/mcp#access_token="),
        ("/mcp", [], "/mcp"),
        ("", [], ""),
    ],
)
def test_url_loses_user_and_values_of_its_query(url: str, secrets: list[str], kept: str) -> None:
    redacted = Redactor(KEY).redact_url(url)
    assert redacted.startswith(kept)
    assert not any(secret in redacted for secret in secrets)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://a.b/s/9f8e7d6c5b4a/mcp", "https://a.b/s/{}/mcp"),
        ("/mcp/0b0f4a3e-6f0c-4b3a-9d52-1f2e3d4c5b6a", "/mcp/{}"),
        ("/AbC123xyz9Qw?a=b", "/{}?a="),
        ("https://a.b/.well-known/oauth-protected-resource/9f8e7d6c5b4a", None),
        (
            "https://a.b/v1.2/2025-11-25/my-server/messages",
            "https://a.b/v1.2/2025-11-25/my-server/messages",
        ),
    ],
)
def test_random_part_of_a_path_becomes_a_pseudonym(url: str, kept: str | None) -> None:
    """Tokens in paths are secrets too; words, versions and dates in them stay readable."""
    redactor = Redactor(KEY)
    shown = redactor.redact_url(url)
    if kept is None:
        kept = url.replace("9f8e7d6c5b4a", "{}")
    before, mark, after = kept.partition("{}")
    assert shown.startswith(before)
    assert after in shown
    assert (shown != url) is bool(mark)
    assert len(shown) == len(url)
    head = HttpHead(
        status=401, headers=(("www-authenticate", f'Bearer resource_metadata="{url}"'),)
    )
    line = redactor.redact_line(TraceLine(t=0, http=head)).http
    if "://" in url:
        assert line is not None
        assert shown in line.headers[0][1]


def test_session_in_the_endpoint_event_is_that_of_later_requests() -> None:
    redactor = Redactor(KEY)
    event = TraceLine(t=0, sse=SseFields(event="endpoint"), raw=f"/messages?session_id={ID}")
    post = TraceLine(t=0, http=HttpHead(method="POST", target=f"/messages?session_id={ID}"))
    raw, head = redactor.redact_line(event).raw, redactor.redact_line(post).http
    assert head is not None
    assert raw == head.target
    assert ID not in head.target


# -- Commands and stderr ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["node", "server.js", "--port", "80"], "node server.js --port 80"),
        (["x", "--api-key", "abc", "--v"], "x --api-key '‹redacted 3›' --v"),
        (["x", "--license-key=abc"], "x '--license-key=‹redacted 3›'"),
        (["x", "--password", "--v"], "x --password --v"),
        (["env", "GITHUB_TOKEN=abc", "x"], "env 'GITHUB_TOKEN=‹redacted 3›' x"),
        (["x", "--header", "X-Api-Key: abc"], "x --header 'X-Api-Key: ‹redacted 3›'"),
        (["x", "sk-0123456789abcdefghij"], "x '‹redacted 23›'"),
        (["x", "postgres://u:p@h/db"], "x postgres://redacted@h/db"),
        (["x", "--db=postgres://u:p@h/db"], "x --db=postgres://redacted@h/db"),
        (["sh", "-c", "x --v=1 --api-key abc"], "sh -c 'x --v=1 --api-key ‹redacted 3›'"),
        (["sh", "-c", "x a://b --token abc"], "sh -c 'x a://b --token ‹redacted 3›'"),
        (["x", '{"a":1,"apiKey":"abc"}'], """x '{"a":1,"apiKey":"‹redacted 3›"}'"""),
        (["x", "Server=h;Password=abc;P=1"], "x 'Server=h;Password=‹redacted 3›;P=1'"),
    ],
)
def test_command_loses_its_secrets(words: list[str], shown: str) -> None:
    assert shlex.join(Redactor(KEY).redact_command(words)) == shown


def test_stderr_loses_tokens_and_private_keys() -> None:
    """A private key spans several lines, so the redactor remembers that it is inside one."""
    redactor = Redactor(KEY)
    lines = [
        "using ghp_0123456789abcdefghij now",
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA7",
        "-----END RSA PRIVATE KEY-----",
        'API_KEY=s3cret password: "s3cret" {"clientSecret":"s3cret"}',
        "ready",
    ]
    found = [
        redactor.redact_line(TraceLine(t=0, kind="stderr", text=line)).text or "" for line in lines
    ]
    assert found[0] == "using ‹redacted 24› now"
    assert "MIIE" not in "".join(found)
    assert found[4] == (
        'API_KEY=‹redacted 6› password: "‹redacted 6›" {"clientSecret":"‹redacted 6›"}'
    )
    assert found[-1] == "ready"


X = "0123456789abcdefghij"


@pytest.mark.parametrize(
    "secret",
    [
        f"-----BEGIN PRIVATE KEY-----{X}-----END PRIVATE KEY-----",
        *(f"bearer {X}", f"BEARER {X}", f"Basic {X}", f"eyJ{X}.{X}", f"sk-{X}", f"sk_{X}"),
        *(f"pk-{X}", f"pk_{X}", f"rk-{X}", f"rk_{X}", f"ghp_{X}", f"ghx_{X}", f"github_pat_{X}"),
        *(f"glpat-{X}", f"npm_{X}", f"pypi-{X}", f"hf_{X}", f"xoxb-{X}", "AKIA0123456789ABCDEF"),
        *("ASIA0123456789ABCDEF", f"AIza{X}{X}", f"a://ann:{X}@b"),
    ],
)
def test_every_form_of_a_secret_is_found(secret: str) -> None:
    assert SECRET_FORM.search(secret) is not None
    assert X[:10] not in Redactor(KEY).redact_text(f"a {secret} b")


@pytest.mark.parametrize("mark", ["key", "TOKEN", "Secret", "passwd", "pwd", "credential"])
def test_every_name_of_a_secret_is_found_in_stderr(mark: str) -> None:
    line = TraceLine(t=0, kind="stderr", text=f"a {mark}=abc b")
    assert Redactor(KEY).redact_line(line).text == f"a {mark}=‹redacted 3› b"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Authorization: Token s3cret x", "Authorization: ‹redacted 14›"),
        ("> authorization: Bearer s3cret", "> authorization: ‹redacted 13›"),
        ("Authorization=Basic s3cret", "Authorization=‹redacted 12›"),
        ("Cookie: a=s3cret; b=s3cret", "Cookie: ‹redacted 18›"),
        ("Set-Cookie: a=s3cret; Path=/", "Set-Cookie: ‹redacted 16›"),
        ("{'Authorization': 'Token s3cret', 'a': 1}", "{'Authorization': '‹redacted 12›', 'a': 1}"),
        ("(b'authorization', b'Token s3cret'), 1", "(b'authorization', b'‹redacted 12›'), 1"),
        ('{\\"cookie\\":\\"a=s3cret\\"}', '{\\"cookie\\":\\"‹redacted 8›\\"}'),
        ('"auth" => "s3cret"', '"auth" => "‹redacted 6›"'),
        ("auth=s3cret&x=1", "auth=‹redacted 6›&x=1"),
        ("api_key: s3cret, x", "api_key: ‹redacted 6›, x"),
        ("loaded a: DB_PASS=s3cret", "loaded a: DB_PASS=‹redacted 6›"),
        ("sentry_dsn = s3cret", "sentry_dsn = ‹redacted 6›"),
        ("run --token s3cret --v", "run --token ‹redacted 6› --v"),
        ("x-functions-key: s3cret", "x-functions-key: ‹redacted 6›"),
        ("at https://ann:s3cret@a.b/c now", "at https://‹redacted 10›@a.b/c now"),
        ("at https://s3cret@a.b/c now", "at https://redacted@a.b/c now"),
        ("the author: Ann, path=/x, compass=1", "the author: Ann, path=/x, compass=1"),
    ],
)
def test_stderr_loses_credentials_of_every_scheme(line: str, shown: str) -> None:
    assert Redactor(KEY).redact_line(TraceLine(t=0, kind="stderr", text=line)).text == shown


@pytest.mark.perf
def test_line_of_stderr_with_many_names_is_read_in_linear_time() -> None:
    text = "a:b " * 100_000 + "key" + "=a" * 100_000
    begun = time.process_time()
    Redactor(KEY).redact_line(TraceLine(t=0, kind="stderr", text=text))
    assert time.process_time() - begun < 10


@pytest.mark.perf
def test_long_lines_of_stderr_are_not_searched_by_a_pattern() -> None:
    """A pattern keeps the interpreter for itself: 1 MiB took half a second."""
    line = TraceLine(t=0, kind="stderr", text="the handler has answered 200\t" * 10_000)
    redactor = Redactor(KEY)
    text = line.text or ""
    assert redactor.redact_line(line).text == text

    def seconds(function: Callable[[], object]) -> float:
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun

    redaction = min(seconds(lambda: redactor.redact_line(line)) for _ in range(5))
    assert redaction < min(seconds(lambda: SECRET_FORM.search(text)) for _ in range(5)) / 2


def test_header_names_what_is_hidden() -> None:
    redacted = Redactor(KEY, ["/params/x"]).redacted
    assert "header:authorization" in redacted
    assert "pointer:/params/x" in redacted


# -- Known secrets ---------------------------------------------------------------------------------

KNOWN = 'plum "pie"'


def test_known_secret_is_hidden_in_every_part_of_a_line() -> None:
    """A secret known by value is hidden even where no name gives it away."""
    redactor = Redactor(KEY, secrets=[KNOWN, "tiny"])
    message = {"a": f"my {KNOWN}", KNOWN: 1, "b": ["tiny", KNOWN], "c": {KNOWN: KNOWN}}
    line = TraceLine(
        t=0,
        raw=json.dumps(message),
        text=f"no {KNOWN} left",
        http=HttpHead(method="POST", target="/plum%20", headers=(("x-tenant", KNOWN),)),
    )
    found = redactor.redact_line(line)
    assert found.raw is not None
    assert json.loads(found.raw)["b"] == ["tiny", "‹redacted 10›"]
    assert found.redacted == ("/a", "/b/1", "/c")
    assert "plum \\" not in found.raw
    assert found.text == "no ‹redacted 10› left"
    assert found.http is not None
    assert found.http.headers == (("x-tenant", "‹redacted 10›"),)
    assert "secret" in redactor.redacted


def test_known_secret_is_hidden_in_junk_commands_and_urls() -> None:
    redactor = Redactor(KEY, secrets=["rhubarb"])
    assert "rhubarb" not in redact("it is rhubarb, indeed", redactor=redactor).raw
    data = redactor.redact_line(TraceLine(t=0, data=b"\xff rhubarb")).data
    assert data is not None
    assert (data[:1], b"rhubarb" in data) == (b"\xff", False)
    assert redactor.redact_command(["run", "--as=rhubarb"]) == ["run", "--as=‹redacted 7›"]
    url = redactor.redact_url("http://a/rhubarb/mcp")
    assert (len(url), url[:9], url[-4:]) == (20, "http://a/", "/mcp")
    assert "rhubarb" not in url
    assert redactor.redact_url("/rhubarb") == url[8:16]


def test_message_without_known_secret_is_the_same_line() -> None:
    line = TraceLine(t=0, raw='{"method":"ping"}')
    assert Redactor(KEY, secrets=["rhubarb"]).redact_line(line) is line


@pytest.mark.parametrize("name", ["mcp-name", "mcp-param-uri"])
def test_header_that_repeats_the_message_stays_as_the_message_has_it(name: str) -> None:
    uri = "https://example.com/9f8e7d6c5b4a39281706?id=123"
    assert Redactor(KEY).redact_header(name, uri) == uri
    assert Redactor(KEY).redact_header("x-other", uri) != uri


def test_known_secret_is_hidden_in_the_short_texts_of_a_line() -> None:
    """An event's id and type, and the reason of a close frame, may repeat what a peer was sent."""
    redactor = Redactor(KEY, secrets=["rhubarb"])
    event = TraceLine(t=0, raw="{}", sse=SseFields(id="rhubarb-1", event="of rhubarb", retry=5))
    fields = SseFields(id="‹redacted 7›-1", event="of ‹redacted 7›", retry=5)
    assert redactor.redact_line(event).sse == fields
    unnamed = TraceLine(t=0, raw="{}", sse=SseFields(event="of rhubarb"))
    assert redactor.redact_line(unnamed).sse == SseFields(event="of ‹redacted 7›")
    close = TraceLine(t=0, websocket=WebSocketClose(code=1008, reason="no rhubarb"))
    assert redactor.redact_line(close).websocket == WebSocketClose(
        code=1008, reason="no ‹redacted 7›"
    )
    silent = TraceLine(t=0, websocket=WebSocketClose(code=1000))
    assert redactor.redact_line(silent).websocket == WebSocketClose(code=1000)


def test_name_of_a_task_that_is_broken_base64_has_a_pseudonym() -> None:
    redactor = Redactor(KEY)
    broken = f"=?base64?{ID}*?="
    headers = (("mcp-method", "tasks/get"), ("mcp-name", broken))
    head = HttpHead(method="POST", target="/", headers=headers)
    found = redactor.redact_line(TraceLine(t=0, sender="client", http=head)).http
    assert found is not None
    assert dict(found.headers)["mcp-name"] == redactor.pseudonym_of_id(broken) != broken


def test_url_in_the_header_that_has_one_loses_its_query() -> None:
    redactor = Redactor(KEY)
    for name in ("location", "content-location", "referer"):
        assert "abc" not in redactor.redact_header(name, "/login?code=abc")
        assert redactor.redact_header(name, "/login") == "/login"


def test_memory_of_a_redactor_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer chooses heads, ids and logins, so all that is remembered of them has a limit.

    What was forgotten is redacted as before.
    """
    monkeypatch.setattr(_redaction, "_MAX_HEADERS", 3)
    monkeypatch.setattr(_redaction, "_MAX_LOGINS", 3)
    monkeypatch.setattr(_redaction, "_MAX_PSEUDONYMS", 3)
    monkeypatch.setattr(_redaction, "_MAX_ELICITATIONS", 3)
    redactor = Redactor(KEY)

    def lines(number: int) -> list[TraceLine]:
        form = ("content-type", "application/x-www-form-urlencoded")
        head = HttpHead(
            method="POST",
            target=f"/{number}?code=abc",
            headers=((f"x-{number}", f"{number}"), ("authorization", f"Bearer a{number}"), form),
        )
        of_task = {"params": {"taskId": f"{ID}{number}"}}
        ask = {"id": number, "method": "elicitation/create", "params": {}}
        return [
            TraceLine(t=0, sender="client", exchange=number, http=head, raw="password=x"),
            TraceLine(t=0, sender="client", raw=json.dumps(of_task)),
            TraceLine(t=0, sender="server", raw=json.dumps(ask)),
        ]

    first = [redactor.redact_line(each) for each in lines(0)]
    sizes = []
    for number in range(10):
        again = [redactor.redact_line(each) for each in lines(number)]
        assert (again == first) is (number == 0)
        kept = (redactor._heads, redactor._targets, redactor._headers, redactor._id_tokens)
        sizes += [len(each) for each in (*kept, redactor._logins, redactor._elicitations)]
    assert max(sizes) == 3
    assert [redactor.redact_line(each) for each in lines(0)] == first
    # The newest logins and elicitations are those that are remembered.
    assert list(redactor._logins) == [8, 9, 0]
    assert [id for _, id in redactor._elicitations] == ["8", "9", "0"]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("https://h", ("", "https://h")),
        ("--url=git+ssh://h", ("--url=", "git+ssh://h")),
        ("a,x-y.z2://h", ("a,", "x-y.z2://h")),
        ("=://h", ("=", "://h")),
    ],
)
def test_url_begins_with_its_scheme(word: str, parts: tuple[str, str]) -> None:
    assert _redaction._split_url(word) == parts


def test_short_id_in_a_list_of_tasks_is_kept() -> None:
    """It says nothing, and stays as it is elsewhere; the state of a request is no id."""
    message = {"method": "x", "params": {"taskIds": ["t1", ID], "requestState": "s1"}}
    found = redact_json(message)["params"]
    assert found["taskIds"] == ["t1", Redactor(KEY).pseudonym_of_id(ID)]
    assert found["taskIds"][1] != ID
    assert found["requestState"] != "s1"


KEPT = kept_redactions()


@pytest.mark.parametrize("name", KEPT)
def test_texts_are_redacted_as_is_kept(name: str) -> None:
    """`python -m tests.core.trace.redactions` writes them again."""
    assert redactions_of(name) == KEPT[name]


def test_kept_redactions_are_all_of_the_tables() -> None:
    assert list(KEPT) == redactions()


def test_id_of_32_bits_has_a_pseudonym() -> None:
    redactor = Redactor(KEY)
    assert redactor.pseudonym_of_id("1a1a1a1a") != "1a1a1a1a"


def test_lines_after_a_private_key_without_an_end_are_shown_again() -> None:
    """A key has far fewer lines. One whose end is missing does not hide all that follows."""
    redactor = Redactor(KEY)
    assert redactor.redact_text("-----BEGIN PRIVATE KEY-----") == "‹redacted 27›"
    found = [redactor.redact_text("abc") for _ in range(202)]
    assert found == ["‹redacted 3›"] * 200 + ["abc"] * 2


def test_equal_headers_of_several_heads_are_redacted_once() -> None:
    redactor = Redactor(KEY)
    found = []
    for target in ("/a", "/b"):
        head = HttpHead(method="GET", target=target, headers=(("cookie", "a=b"), ("host", "h")))
        line = redactor.redact_line(TraceLine(t=0, http=head)).http
        assert line is not None
        found.append(line.headers)
    assert all(first is second for first, second in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        *(("_heads", 200), ("_targets", 200), ("_headers", 200)),
        *(("_ids", 1000), ("_id_tokens", 1000), ("_pseudonyms", 1000)),
        *(("_logins", 1000), ("_elicitations", 1000)),
    ],
)
def test_redactor_remembers_so_many_values_of_a_peer(name: str, limit: int) -> None:
    """Each is filled with one value more than it keeps."""
    redactor = Redactor(KEY)
    form = ("content-type", "application/x-www-form-urlencoded")
    sizes = []
    for number in range(limit + 1):
        if name in ("_heads", "_targets", "_headers", "_logins"):
            header = form if name in ("_targets", "_logins") else ("x", f"{number}")
            target = f"/{number}" if name == "_targets" else "/"
            head = HttpHead(method="POST", target=target, headers=(header,))
            raw = "a=b" if name == "_logins" else None
            redactor.redact_line(TraceLine(t=0, exchange=number, http=head, raw=raw))
        elif name == "_elicitations":
            redact(f'{{"id":{number},"method":"elicitation/create"}}', redactor=redactor)
        else:
            redact(f'{{"taskId":"{ID}{number}"}}', redactor=redactor)
        sizes.append(len(getattr(redactor, name)))
    assert max(sizes) == sizes[limit - 1] == limit
    assert sizes[limit] in (1, limit)
