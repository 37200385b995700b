"""The whole of what is shown of texts that may have secrets, in `redactions.txt`.

    python -m tests.core.trace.redactions

writes the file again. A change of what is hidden shows in it everything else that it hides, or no
longer hides: read that difference before you commit it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.http.wire._mcp_headers import encode_value
from mcp_core.trace import (
    HttpHead,
    Redactor,
    SseFields,
    TraceLine,
    TruncatedMessage,
    WebSocketClose,
    encode_line,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["kept_redactions", "redactions", "redactions_of"]

_FILE: Final = Path(__file__).with_name("redactions.txt")
_KEY: Final = b"k" * 32
_KNOWN: Final = ("rhubarb-7", 'plum "pie"\n', "tâche", "tiny")
_POINTERS: Final = ("/params/arguments/pw", "/result/0", "/a~1b/c~0d", "/result/content")
_ID: Final = "0f5e2c1a-3b7d-4c1e-9a55-0123456789ab"
_LONG: Final = "0123456789abcdefghij"

# Messages of one conversation each, in their order; a text is one that isn't valid JSON.
_MESSAGES: Final[list[list[Any]]] = [
    [{"method": "ping"}],
    [{"params": {"arguments": {"pw": "abc", "n": {"pw": 1}}, "pw": "abc"}}],
    [{"params": {"arguments": {"pw": {"a": [1, 1.5, True, None, "x", {}]}, "q": 2}}}],
    [[{"params": {"arguments": {"pw": ["x"]}}}, 5, {"a/b": {"c~d": -1e5, "c": "x"}}]],
    [{"a/b": {"c~d": "x"}, "result": ["x", "y"]}, {"result": {"0": "x", "1": "y"}}],
    [{"params": {"taskId": _ID}}, {"params": {"taskId": _ID}}, {"params": {"taskId": _ID[:-1]}}],
    [{"params": {"taskId": "task-1", "a": {"taskId": 17, "b": {"taskId": ""}}}}],
    [{"params": {"taskId": {"taskId": _ID}}}, {"params": {"taskId": [_ID], "x": {"taskId": _ID}}}],
    [{"params": {"notifications": {"taskIds": ["t1", _ID, 5, [_ID], {"a": _ID}]}}}],
    [{"taskIds": {"taskId": _ID, "x": _ID}}, {"taskIds": _ID}, ["taskIds", _ID]],
    [{"params": {"taskId": "ABCDEFG"}}, {"params": {"taskId": "ABCDEF"}}],
    [{"params": {"taskId": "123456789"}}, {"params": {"taskId": "1234567890"}}],
    [{"params": {"taskId": "----------"}}, {"params": {"taskId": "äöüÄÖÜß"}}],
    [{"params": {"taskId": 'a"b\\c0123456789', "x": 'taskId":"y'}}],
    ['{"taskId" :\n"' + _ID + '", "x":{"taskId":17},"y":{"taskId":"' + _ID],
    ['{"task\\u0049d":"' + _ID + '"}', '{"taskId":"' + _ID + '\\u0041","x":1}'],
    [r'{"taskId":"t\/1"}', '{"taskId":"t1', r'{"taskIds":["t\/1"],"x":"\u0041"}'],
    [{"text": json.dumps({"taskId": _ID})}, {"text": "taskId"}, {"taskIds": [_ID]}],
    [{"result": {"requestState": "v1.abcDEF-123_"}}, {"params": {"requestState": "v1"}}],
    [{"params": {"requestState": {"user": "ann", "n": [1]}, "x": "y"}}],
    [{"params": {"requestState": 17}}, {"params": {"requestState": None}}, {"requestState": ""}],
    [{"params": {"requestState": "\ud800abc"}}, {"requestState": ["\udfffabc", "\u20acabc"]}],
    [{"id": 1, "result": {"action": "accept", "content": {"pin": 1234, "ok": True}}}],
    [{"id": 1, "result": {"action": "accept", "content": [1], "x": {"content": [1]}}}],
    [{"result": {"content": "x"}, "action": 1}, {"action": {"result": {"content": "x"}}}],
    [
        {"id": "e1", "method": "elicitation/create", "params": {"content": "x"}},
        {"id": "e2", "result": {"content": {"pin": "9"}}},
        {"id": 1, "result": {"content": {"pin": "9"}}},
        {"id": "e1", "result": {"content": {"pin": "9"}}},
        {"id": "e1", "result": {"content": {"pin": "9"}}},
    ],
    [
        {"method": "elicitation/create", "id": 1},
        {"method": "elicitation/create", "id": 2},
        {"id": 2, "result": {"a": {"content": "x"}, "content": "x"}},
        '{"result":{"content":"x"',
        {"id": 1, "error": {"content": "x"}},
        {"id": 1, "result": {"content": "x"}},
        '{"result":{"content":"x"',
    ],
    [
        [{"id": 1, "method": "elicitation/create"}, {"id": 2, "method": "ping"}],
        [{"id": 2, "result": {"content": "x"}}, {"result": {}, "id": 3}],
        [{"id": 3, "result": {"content": "x"}}, {"id": 1, "result": {"content": "y"}}],
        [{"id": 1, "result": {"content": "x"}}],
    ],
    [
        {"id": 1, "method": "elicitation/create"},
        '{"id":1,"result":{"content":"x"},"result":{"content":"x"}}',
        {"id": 1, "result": {"content": "x"}},
    ],
    [
        {"id": 1, "method": "elicitation\\/create"},
        '{"id":2,"method":"elicitation\\/create"}',
        {"params": {"id": 3, "method": "elicitation/create"}},
        {"id": 1, "result": {"content": "x"}},
        {"id": 3, "result": {"content": "x"}},
        {"id": 2, "result": {"content": "x"}},
    ],
    [
        {"method": "elicitation/create"},
        {"result": {"content": "x"}},
        {"id": 1, "method": "elicitation/complete"},
        {"id": 1, "result": {"content": "x"}},
    ],
    [{"id": 1, "result": {"content": [{"type": "text", "text": "hi"}]}}],
    [
        {
            "params": {
                "inputResponses": {"a": {"action": "accept", "content": {"pin": "9", "b": 1}}}
            }
        },
        {"inputResponses": {"content": "x", "a": {"content": 5, "c": {"content": {}}}}},
        {"params": {"inputResponse": {"a": {"content": "x"}}}},
        [{"params": {"inputResponses": [{"content": {"a": "x"}}]}}],
    ],
    [{"method": "elicitation/create", "params": {"url": "https://u:p@a.b/c?state=s3cret#x"}}],
    [{"method": "elicitation/create", "params": {"url": "https://a.b/c", "a": {"url": "/x?y=z"}}}],
    [{"method": "elicitation/create", "params": {"url": {"url": "/x?y=z"}, "uri": "/x?y=z"}}],
    [{"params": {"url": "https://a.b/c?state=s3cret"}}, {"url": 7, "method": "elicitation/"}],
    [{"capabilities": {"elicitation": {"form": {}, "url": {}}}, "url": "/x?y=z"}],
    [{"capabilities": {"elicitation": {"url": {}, "form": {}}}}, {"x": "elicitation"}],
    ['{"\\u0075rl":"/x?y=z"}', '{"x":"elicitation","url":"/x?y=z"}', '{"url":"/x?y=z'],
    [{"rhubarb-7": 1, "a": "my rhubarb-7", "b": ["tiny", "rhubarb-7"], "c": {"d": "rhubarb-7"}}],
    [{"a": 'plum "pie"\n', "b": "plum+%22pie", "c": "rhubarb", "d": "rhubarb-"}],
    ["it is rhubarb-7, indeed", '{"a":"rhubarb-7', '{"rhubarb-7":{"requestState":{"x":1}}}'],
    [{"taskId": "rhubarb-7", "requestState": "rhubarb-7", "x": {"content": "rhubarb-7"}}],
    [{"a": "rhubarb%2D7", "b": "\\u0072hubarb-7", "c": "cmh1YmFyYi03"}],
    ["", "{", "}", "[]", '"', '"\\', "nul", "true", ",,", ":", '"a":"b"', "[1,2", "]]{", "{]"],
]
# Bodies of an exchange: content type, status (0 for a request), and the body.
_BODIES: Final[list[list[tuple[str, int, str | bytes]]]] = [
    [("application/x-www-form-urlencoded", 0, "a=b"), ("application/json", 200, '{"k":"v"}')],
    [("Multipart/Form-Data; boundary=a", 0, b"--a\xff x"), ("text/plain", 400, b"\xff")],
    [("multipart/mixed", 0, "a=b"), ("application/x-www-form-urlencoded", 200, "a=b")],
    [("application/json", 0, '{"access_token" : "x"}'), ("application/json", 200, "{}")],
    [("application/json", 200, '{"token":"x"}'), ("application/json", 200, '{"k":"v"}')],
    [("application/json", 0, '{"jsonrpc":"2.0","password":"x"}')],
    [("application/json", 0, b'{"password":"x"}\xff'), ("application/json", 200, '{"k":"v"}')],
    [("text/html", 200, "<p>"), ("text/html", 299, "<p>"), ("text/html", 300, "<p>")],
    [("text/html", 0, "<p>"), ("text/html; charset=x", 200, b"<p>\xff"), ("TEXT/HTML", 200, "")],
    [
        ("application/json", 201, f'{{"{name}":1}}')
        for name in """
        access_token refresh_token id_token client_secret registration_access_token grant_type
        device_code user_code code_verifier client_assertion assertion subject_token redirect_uris
        password token tokens scope client_id
        """.split()
    ],
]
_URLS: Final = """
https://a.b/c https://ann:pw@a.b/c https://ann@a.b:80/c https://a@b:pw@c.d/e https://ann:p/w@a.b/c
https://ann:p?w@a.b/c https://ann:p#w@a.b/c https://[::1]:80/c https://[::1]/@x https://a.b/@user
https://:pw@h/ https://a.b:80/@x https://a.b:pw/x@y https://a.b://c https://a.b?x@y
/mcp?token=s3cret&x=v4 /mcp?s3cret /mcp?a=b1=c2 /mcp?a=&b /mcp#access_token=s3 /mcp?a=b#c=d?e=f
/mcp;a=b /mcp?a=b;c=d ?a=b #a /mcp?a=%2Fx /a%2Fb/9f8e7d6c5b4a/mcp /9f8e7d6c5b4a%2F
/mcp/0b0f4a3e-6f0c-4b3a-9d52-1f2e3d4c5b6a /AbC123xyz9Qw?a=b https://9f8e7d6c5b4a.b/c
/v1.2/2025-11-25/my-server /rhubarb-7 /rhub%61rb-7?rhubarb-7 https://rhubarb-7.b/ /rhub/arb-7
urn:x:rhubarb-7 a://b/c?d=rhubarb-7 ://x://y?z=1
""".split()
_HEADER_NAMES: Final = """
authorization proxy-authorization cookie set-cookie x-api-key dpop x-my-token x-functions-key
idempotency-key sec-websocket-key mcp-session-id mcp-name mcp-param-user mcp-method location
content-location referer www-authenticate link content-type x-other
""".split()
_HEADER_VALUES: Final = [
    "",
    "abc",
    "Bearer abc",
    "a b c",
    _ID,
    "https://u:p@a.b/9f8e7d6c5b4a?c=d, <x://y?z=1>",
    "/login?code=abc",
    "x ghp_0123456789abcdefghij",
    "rhubarb-7",
]
# Heads of one trace: headers of a method with `Mcp-Name`.
_NAMES: Final = [
    ("tasks/get", _ID),
    ("tasks/get", "t1"),
    ("tasks/cancel", encode_value(f"tâche {_ID}").decode()),
    ("tasks/result", f"=?base64?{_ID}*?="),
    ("tasks/get", "\xe4" + _ID),
    ("tools/call", _ID),
    ("", _ID),
]
_TEXTS: Final = [
    *("", "ready", "a b=c", "the author: Ann, path=/x, compass=1", "key", "key=", "key=abc"),
    *("TOKEN=abc x", "a Secret: abc,d", "passwd='a b'", 'pwd="a b"', "credential -> x", "pin=12"),
    *("Authorization: Token s3cret x", "authorization: Bearer s3cret", "Cookie: a=b; c=d"),
    *("{'Authorization': 'Token s3cret', 'a': 1}", "(b'authorization', b'Token s3cret'), 1"),
    *('{\\"cookie\\":\\"a=s3cret\\"}', '"auth" => "s3cret"', "auth=s3cret&x=1", "api_key: x, y"),
    *("loaded a: DB_PASS=s3cret", "sentry_dsn = s3cret", "run --token s3cret --v", "x --key -v"),
    *("x --token=s3cret", "x --token 's3cret' y", "run -p s3cret --api-key s3cret -- x"),
    *("at https://ann:s3cret@a.b/c now", "at https://a.b/c?d=e, x://y?z", "://", "a://b a.b://c?d"),
    *(f"using ghp_{_LONG} now", f"bearer {_LONG}", f"BASIC {_LONG}==", f"eyJ{_LONG}.{_LONG}"),
    *(f"sk-{_LONG}", f"task-{_LONG}", f"pk_{_LONG} rk-{_LONG}", f"xoxb-{_LONG}", f"hf_{_LONG}"),
    *("AKIA0123456789ABCDEF", f"AIza{_LONG}{_LONG}", f"github_pat_{_LONG}", f"ghp_{_LONG[:15]}"),
    *("rhubarb-7", "no rhubarb-7 left", "password=rhubarb-7 x", "rhubarb", "arb-7", "tiny tâche"),
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN PRIVATE KEY-----abc-----END PRIVATE KEY----- x",
    *("-----BEGIN RSA PRIVATE KEY-----", "MIIE", "key=x", "-----END RSA PRIVATE KEY-----", "MIIE"),
    *("x -----BEGIN PRIVATE KEY-----abc", "abc", "-----END"),
]
_COMMANDS: Final[list[list[str]]] = [
    ["node", "server.js", "--port", "80"],
    ["x", "--api-key", "abc", "--v"],
    ["x", "--api-key", "-abc", "--v"],
    ["x", "--api-key", "--token", "abc", "abc"],
    ["x", "--license-key=abc", "--keyboard=abc", "--monkey", "abc", "--path=abc"],
    ["x", "--password", "--v"],
    ["x", "--password"],
    ["env", "GITHUB_TOKEN=abc", "A=b", "KEY=", "=abc", "a b=key=abc"],
    ["x", "--header", "X-Api-Key: abc", "X-Api-Key:abc", "Accept: abc", "a b: c", "Cookie: a=b"],
    ["x", "-H", "Authorization: Bearer abc", "Authorization: Basic YW5uOmFiYw=="],
    ["x", f"sk-{_LONG}", f"a=ghp_{_LONG}", "rhubarb-7", "--as=rhubarb-7"],
    [
        "x",
        "postgres://u:p@h/db",
        "--db=postgres://u:p@h/db?a=b",
        "token://h",
        "key:x://y",
        "a,://b",
    ],
    ["sh", "-c", "x --v=1 --api-key abc", "x a://b --token abc", "TOKEN=abc x --v"],
    ["x", '{"a":1,"apiKey":"abc"}', "Server=h;Password=abc;P=1", "token", "abc"],
    ["x", "apikey", "abc", "-k", "abc", "-token", "abc", "--token:", "abc"],
]


def _redactors() -> dict[str, Redactor]:
    return {
        "plain": Redactor(_KEY),
        "pointers": Redactor(_KEY, _POINTERS),
        "known": Redactor(b"other", secrets=_KNOWN),
    }


def _shown(text: str) -> str:
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text.encode("utf-8", "backslashreplace").decode()


def _line(line: TraceLine, found: TraceLine) -> str:
    if found is line:
        return "the same"
    return _shown(encode_line(found).decode().strip())


def _messages(messages: list[Any]) -> Iterator[str]:
    redactors = _redactors()
    for message in messages:
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()
        yield text.replace("\n", "\\n")
        for name, redactor in redactors.items():
            truncated = TruncatedMessage(size=1000, sha256="0f")
            line = TraceLine(t=0, raw=text, truncated=truncated)
            found = redactor.redact_line(line)
            data = TraceLine(t=0, data=text.encode() + b"\xff")
            if found is not line:
                yield f"  {name}: {_shown(found.raw or '')} {' '.join(found.redacted)}".rstrip()
                assert found.truncated == TruncatedMessage(size=1000)
            elif redactor.redact_line(data) is not data:
                yield f"  {name}: only as bytes"


def _bodies(bodies: list[tuple[str, int, str | bytes]]) -> Iterator[str]:
    redactor = Redactor(_KEY)
    for exchange, some in ((1, bodies), (2, reversed(bodies))):
        for type, status, body in some:
            head = HttpHead(
                method="" if status else "POST",
                target="" if status else "/mcp",
                status=status,
                headers=(("x", "text/html"), ("content-type", type)),
            )
            raw, data = (body, None) if isinstance(body, str) else (None, body)
            line = TraceLine(t=0, exchange=exchange, http=head, raw=raw, data=data)
            shown = _line(line, redactor.redact_line(line))
            yield f"exchange {exchange}: {status or 'POST'} {type} {body!r}: {shown}"
            without = TraceLine(t=0, exchange=exchange, http=head)
            assert redactor.redact_line(without) is without


def _urls() -> Iterator[str]:
    for url in (*_URLS, "", "a b/\xe4?c=\xe4", "/\ud800?\ud800"):
        yield _shown(url)
        yield from _each(url, {n: each.redact_url(url) for n, each in _redactors().items()})


def _each(text: str, found: dict[str, str]) -> Iterator[str]:
    for name, shown in found.items():
        if shown != (text if name == "plain" else found["plain"]):
            yield f"  {name}: {_shown(shown)}"


def _headers(name: str) -> Iterator[str]:
    for value in _HEADER_VALUES:
        yield value
        heads = {}
        for kind, redactor in _redactors().items():
            line = TraceLine(t=0, http=HttpHead(status=200, headers=((name, value), ("a", "b"))))
            found = redactor.redact_line(line).http
            assert found is not None
            assert redactor.redact_line(line).http == found
            heads[kind] = found.headers[0][1]
        yield from _each(value, heads)


def _names() -> Iterator[str]:
    redactor = Redactor(_KEY, secrets=_KNOWN)
    for method, name in _NAMES:
        for headers in (
            (("mcp-method", method), ("mcp-name", name), ("mcp-name-x", name)),
            (("mcp-name", name), ("rhubarb-7", "a"), ("mcp-method", method)),
        ):
            head = HttpHead(method="POST", target=f"/{method}?a={name}", headers=headers)
            line = TraceLine(t=0, http=head)
            yield _line(line, redactor.redact_line(line))


def _texts() -> Iterator[str]:
    redactors = _redactors()
    others = _redactors()
    for text in _TEXTS:
        yield text
        found = {}
        for name, redactor in redactors.items():
            stderr = redactor.redact_line(TraceLine(t=0, kind="stderr", text=text)).text or ""
            note = others[name].redact_line(TraceLine(t=0, kind="note", text=text)).text or ""
            found[name] = stderr if stderr == note else f"{stderr} (as a note: {note})"
        yield from _each(text, found)


def _commands() -> Iterator[str]:
    for words in _COMMANDS:
        yield str(words)
        found = {n: str(each.redact_command(words)) for n, each in _redactors().items()}
        yield from _each(str(words), found)


def _fields() -> Iterator[str]:
    redactors = _redactors()
    for line in (
        TraceLine(t=0, raw="{}", sse=SseFields(id="rhubarb-7", event="of rhubarb-7", retry=5)),
        TraceLine(t=0, raw="{}", sse=SseFields(id="rhubarb-7")),
        TraceLine(t=0, raw="{}", sse=SseFields(event="rhubarb-7")),
        TraceLine(t=0, raw="{}", sse=SseFields(retry=1)),
        TraceLine(t=0, websocket=WebSocketClose(code=1008, reason="no rhubarb-7")),
        TraceLine(t=0, websocket=WebSocketClose(code=1000)),
        TraceLine(t=0, raw=f"/messages?session_id={_ID}", sse=SseFields(event="endpoint")),
        TraceLine(t=0, raw="/messages?rhubarb-7", sse=SseFields(event="endpoint", id="rhubarb-7")),
        TraceLine(t=0, raw='{"taskId":"' + _ID + '"}', sse=SseFields(event="endpoint")),
        TraceLine(t=0, raw='{"taskId":"' + _ID + '"}', sse=SseFields(event="message", id="1")),
        TraceLine(t=0, data=b'\xff{"taskId":"' + _ID.encode() + b'"}\xfe'),
        TraceLine(t=0, data=b"\xffrhubarb-7", truncated=TruncatedMessage(size=9, sha256="0f")),
        TraceLine(t=0, data=b"\xff", truncated=TruncatedMessage(size=9, sha256="0f")),
        TraceLine(t=0, kind="spawn", text=f"x ghp_{_LONG} rhubarb-7"),
        TraceLine(t=0, kind="exit", status=1),
    ):
        yield encode_line(line).decode().strip()
        yield from (
            f"  {n}: {_line(line, each.redact_line(line))}" for n, each in redactors.items()
        )


def redactions_of(name: str) -> str:
    """Return the texts of a table in the file, each with what is shown of it."""
    kind, _, rest = name.partition(" ")
    lines: dict[str, Callable[[], Iterator[str]]] = {
        "messages": lambda: _messages(_MESSAGES[int(rest)]),
        "bodies": lambda: _bodies(_BODIES[int(rest)]),
        "header": lambda: _headers(rest),
        "urls": _urls,
        "names": _names,
        "texts": _texts,
        "commands": _commands,
        "fields": _fields,
        "what": lambda: iter(Redactor(_KEY, _POINTERS, _KNOWN).redacted),
    }
    return "\n".join(f"  {line}" for line in lines[kind]())


def redactions() -> list[str]:
    """Return the names of the tables."""
    return [
        *(f"messages {n}" for n in range(len(_MESSAGES))),
        *(f"bodies {n}" for n in range(len(_BODIES))),
        *(f"header {name}" for name in _HEADER_NAMES),
        *("urls", "names", "texts", "commands", "fields", "what is hidden"),
    ]


def kept_redactions() -> dict[str, str]:
    """Return the tables in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: redactions_of(name) for name in redactions()})
