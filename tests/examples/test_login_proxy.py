"""`examples/login_proxy.py` with the program of its page, in front of a provider like GitHub."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from base64 import urlsafe_b64encode
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import trio

import mcp_trio
from mcp_trio import ClientProfile, LoginConfig, MemoryStorage
from tests.examples.pages import EXAMPLES, ROOT, code
from tests.fakes.authorization_server import Response, serve
from tests.interop.protected import BACK

pytest.importorskip("authlib", reason="needs authlib")
import httpx2
from starlette.applications import Starlette

from examples.login_proxy import LoginProxy, Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

EXAMPLE = "login_proxy.py"
PAGE = "docs/howto/login-proxy.md"
SERVERS = {
    "mcp_trio": ["hypercorn", "-k", "trio", "--graceful-timeout", "0"],
    "mcp_asyncio_shim": ["uvicorn", "--timeout-graceful-shutdown", "1"],
}


class GitHub:
    """A provider with one OAuth app. Its user is still logged in and isn't asked again.

    Like GitHub's, its errors have status 200, and it knows neither registration nor `resource`.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.user: dict[str, Any] = {"id": 7, "login": "ann", "name": "Ann Example"}
        self.app: dict[str, str] = {}  # the id, the secret and the redirect URI
        self.challenges: dict[str, str] = {}  # by code

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        path, sent = urlsplit(target).path, dict(parse_qsl(urlsplit(target).query))
        form = dict(parse_qsl(body.decode()))
        match method, path:
            case "GET", "/login/oauth/authorize":
                assert {name: sent[name] for name in ("client_id", "redirect_uri")} == {
                    name: self.app[name] for name in ("client_id", "redirect_uri")
                }
                assert "resource" not in sent
                self.challenges["a code"] = sent["code_challenge"]
                found = {"code": "a code", "state": sent["state"]}
                return Response(
                    302, headers=[("location", f"{sent['redirect_uri']}?{urlencode(found)}")]
                )
            case "POST", "/login/oauth/access_token":
                digest = sha256(form["code_verifier"].encode()).digest()
                shown = urlsafe_b64encode(digest).rstrip(b"=").decode()
                right = shown == self.challenges.pop(form["code"], "") and all(
                    form[name] == value for name, value in self.app.items()
                )
                token = {"access_token": "at GitHub", "token_type": "bearer", "scope": ""}
                return document(token if right else {"error": "bad_verification_code"})
            case "GET", "/user" if headers.get("authorization") == "Bearer at GitHub":
                return document(self.user)
        return Response(404)


def document(value: dict[str, Any]) -> Response:
    return Response(200, json.dumps(value).encode(), [("content-type", "application/json")])


@pytest.fixture
async def github(nursery: trio.Nursery) -> GitHub:
    found: GitHub = await nursery.start(partial(serve, make=GitHub))
    return found


@pytest.fixture(params=SERVERS)
async def url(
    request: pytest.FixtureRequest, nursery: trio.Nursery, github: GitHub, tmp_path: Path
) -> str:
    """Serve the page's program on a free port, on trio or asyncio. Return the URL of its server."""
    program, _ = code(PAGE, "python")
    (tmp_path / "notes.py").write_text(program.replace("mcp_trio", request.param))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        site = f"http://127.0.0.1:{listener.getsockname()[1]}"
        github.app = {
            "client_id": "our-app",
            "client_secret": "our-secret",
            "redirect_uri": f"{site}/callback",
        }
        env = {
            "SITE": site,
            "GITHUB": github.issuer,
            "GITHUB_API": github.issuer,
            "GITHUB_CLIENT_ID": "our-app",
            "GITHUB_CLIENT_SECRET": "our-secret",
            "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, EXAMPLES, ROOT))),
        }
        number = str(listener.fileno())
        words = SERVERS[request.param]
        bound = ["--fd", number] if words[0] == "uvicorn" else ["--bind", f"fd://{number}"]
        await nursery.start(
            partial(
                trio.run_process,
                [sys.executable, "-m", *words, "notes:app", *bound],
                env=os.environ | env,
                pass_fds=[listener.fileno()],
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        )
    return f"{site}/mcp"


async def log_in(url: str, agree: str = "yes") -> str:
    """Be the user's browser, from the page of the proxy to the redirect to the client."""
    async with httpx2.AsyncClient() as http:
        page = await http.get(url)
        host = f"http://{urlsplit(url).netloc}"
        response = await http.post(f"{host}/consent", data={"id": hidden(page), "agree": agree})
        while not response.headers["location"].startswith(BACK):
            response = await http.get(response.headers["location"])
        return str(response.headers["location"])


def hidden(page: httpx2.Response) -> str:
    [found] = re.findall(r'name=id value="([^"]+)"', page.text)
    return str(found)


def login(browse: Callable[[str], Any] = log_in) -> LoginConfig:
    profile = ClientProfile(client_name="Tester <b>", redirect_uri=BACK)
    return LoginConfig(profile=profile, storage=MemoryStorage(), browse=browse)


def test_program_of_page_uses_example() -> None:
    assert f"# examples/{EXAMPLE}\n" in code(PAGE, "python")[0]


async def test_program_of_page_logs_user_in_at_provider(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client registers with the proxy and knows nothing of the provider, on both drivers."""
    names: dict[str, Any] = {"mcp_trio": mcp_trio}
    exec(code(PAGE, "python")[1], names)
    await names["main"](url, login())
    assert capsys.readouterr().out == f"{url.removesuffix('/mcp')}#sub:7\nAnn Example\n"


async def test_program_of_page_refuses_user_who_is_not_allowed(url: str, github: GitHub) -> None:
    github.user = {"id": 8, "login": "mallory", "name": "Mallory"}
    with pytest.raises(mcp_trio.ConnectFailed, match="access_denied"):
        await mcp_trio.connect(url, auth=login()).__aenter__()


async def test_program_of_page_user_who_disagrees_never_reaches_provider(
    url: str, github: GitHub
) -> None:
    github.app = {}  # a request to it would fail
    with pytest.raises(mcp_trio.ConnectFailed, match="access_denied"):
        await mcp_trio.connect(url, auth=login(partial(log_in, agree="no"))).__aenter__()


# -- The proxy by itself, without sockets ----------------------------------------------------------

SITE = "https://notes.example"
PROVIDER = Provider(
    "https://github.example/authorize",
    "https://github.example/token",
    "https://github.example/user",
    "our-app",
    "our-secret",
    allows=lambda user: True,
)
BODY = {"redirect_uris": [BACK], "token_endpoint_auth_method": "none", "client_name": "<i>"}


@pytest.fixture
def proxy() -> LoginProxy:
    return LoginProxy(SITE, f"{SITE}/mcp", PROVIDER, ["notes"])


@pytest.fixture
async def browser(proxy: LoginProxy) -> AsyncIterator[httpx2.AsyncClient]:
    async with new_browser(proxy) as http:
        yield http


def new_browser(proxy: LoginProxy) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=Starlette(routes=proxy.routes))
    return httpx2.AsyncClient(transport=transport, base_url=SITE)


async def authorize(http: httpx2.AsyncClient, **changed: str) -> httpx2.Response:
    registered = (await http.post("/register", json=BODY)).json()
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": BACK,
        "scope": "notes",
        "state": "s",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "resource": f"{SITE}/mcp",
    }
    return await http.get("/authorize", params=asked | changed)


async def test_login_proxy_page_escapes_names_and_is_not_framed(
    browser: httpx2.AsyncClient,
) -> None:
    page = await authorize(browser)
    assert "<b>&lt;i&gt;</b> at 127.0.0.1:1 wants" in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    cookie = page.headers["set-cookie"]
    assert cookie.startswith("__Host-login=")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(cookie.split("; "))


async def test_login_proxy_consent_and_callback_need_browser_that_began(
    proxy: LoginProxy, browser: httpx2.AsyncClient
) -> None:
    """A link to the page, or to the callback with an attacker's code, does nothing elsewhere."""
    async with new_browser(proxy) as other:
        form = {"id": hidden(await authorize(browser)), "agree": "yes"}
        assert (await other.post("/consent", data=form)).status_code == 403
        assert (await browser.post("/consent", data=form)).status_code == 403  # it is used up
        form = {"id": hidden(await authorize(browser)), "agree": "yes"}
        sent = await browser.post("/consent", data=form)
        assert sent.status_code == 303
        state = dict(parse_qsl(urlsplit(sent.headers["location"]).query))["state"]
        back = f"/callback?code=c&state={state}"
        assert (await other.get(back)).status_code == 403
        assert (await browser.get(back)).status_code == 403


@pytest.mark.parametrize(
    "changed",
    [
        {"resource": "https://other.example/mcp"},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": ""},
        {"code_challenge": ""},
        {"scope": "admin"},
    ],
    ids=str,
)
async def test_login_proxy_refusal_goes_to_client_and_names_issuer(
    changed: dict[str, str], browser: httpx2.AsyncClient
) -> None:
    location = (await authorize(browser, **changed)).headers["location"]
    sent = dict(parse_qsl(urlsplit(location).query))
    assert location.startswith(f"{BACK}?")
    assert sent["error"] in ("invalid_request", "invalid_scope", "invalid_target")
    assert (sent["iss"], sent["state"]) == (SITE, "s")


@pytest.mark.parametrize(
    "changed",
    [{"client_id": "unknown"}, {"redirect_uri": "https://evil.example"}, {"redirect_uri": ""}],
    ids=str,
)
async def test_login_proxy_unknown_client_or_uri_is_not_redirected(
    changed: dict[str, str], browser: httpx2.AsyncClient
) -> None:
    response = await authorize(browser, **changed)
    assert response.status_code in (400, 401)
    assert "location" not in response.headers


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("https://client.example/back", 201),
        ("http://localhost:1/back", 201),
        ("http://client.example/back", 400),
        ("javascript:alert(1)", 400),
        ("cursor://back", 400),
        ("http://[::1/back", 400),
        (7, 400),
    ],
)
async def test_login_proxy_registers_safe_redirect_uris_only(
    uri: Any, status: int, browser: httpx2.AsyncClient
) -> None:
    response = await browser.post("/register", json={"redirect_uris": [uri]})
    assert response.status_code == status


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"{}", b" " * 70_000], ids=len)
async def test_login_proxy_registration_that_is_none_is_refused(
    body: bytes, browser: httpx2.AsyncClient
) -> None:
    assert (await browser.post("/register", content=body)).status_code == 400


async def test_login_proxy_keeps_newest_clients_only(proxy: LoginProxy) -> None:
    for number in range(10_001):
        proxy.clients[str(number)] = None  # type: ignore[assignment]
    assert len(proxy.clients) == 10_000
    assert "0" not in proxy.clients
