"""The documentation site, built as `docs/conf.py` says, and looked at in a browser."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from websockets.sync.client import connect

from tests.examples.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.client import ClientConnection

# Building the site takes a minute of CPU, and a busy machine gives a test a tenth of a core.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1500)]

WIDTHS: Final = {"phone": 390, "desktop": 1280}
OPTIONS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    "--remote-debugging-port=0",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as built: any warning fails."""
    folder = tmp_path_factory.mktemp("site")
    words = ("-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(folder))
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


class _Page(HTMLParser):
    """The links of a page, and the anchors that others can link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in {"href", "src"} and value:
                self.links.add(value)


@functools.cache
def pages_of(site: Path) -> dict[str, _Page]:
    return {
        str(path.relative_to(site)): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")
    }


def test_links_of_site_lead_to_pages_and_headings(site: Path) -> None:
    pages = pages_of(site)
    assert len(pages) > 30
    broken = []
    for name, page in pages.items():
        for link in page.links:
            target = urlsplit(urljoin(f"http://site/{name}", link))
            if target.netloc != "site":
                assert target.scheme in {"https", "data"}, link
                continue
            path = unquote(target.path).lstrip("/")
            anchors = pages[path].anchors if path in pages else {target.fragment}
            if not (site / path).is_file() or unquote(target.fragment) not in anchors:
                broken.append(f"{name}: {link}")
    assert broken == []


def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    for name, page in pages_of(site).items():
        text = (site / name).read_text("utf-8")
        assert not [link for link in page.links if f'src="{link}"' in text and "//" in link]
        assert '<link rel="stylesheet" type="text/css" href="http' not in text


# -- In a browser ---------------------------------------------------------------------------------


class Browser:
    """A tab of Chromium, driven over its DevTools protocol."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._next_id = 0
        self._session: dict[str, str] = {}
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in "Page", "Runtime", "Log":
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method, and return its result. Note the errors that the page reports meanwhile."""
        self._next_id += 1
        call = {"id": self._next_id, "method": method, "params": params, **self._session}
        self._socket.send(json.dumps(call))
        while True:
            message = self._receive()
            if message.get("id") == self._next_id:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result

    def open(self, url: str) -> None:
        """Open a page, and return when it is loaded."""
        assert "errorText" not in self.call("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=30))
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] == "error":
                self.errors.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(str(params["entry"]))
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs chromium")
        pytest.skip("needs chromium")
    words = [program, *OPTIONS, f"--user-data-dir={profile}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            place = profile / "DevToolsActivePort"
            while not (place.exists() and place.read_text().count("\n")):
                assert process.poll() is None
                time.sleep(0.05)
            port, path = place.read_text().split("\n")[:2]
            url = f"ws://127.0.0.1:{port}{path}"
            with connect(url, max_size=None, proxy=None) as socket:
                yield Browser(socket)
        finally:
            process.terminate()
            process.wait(30)


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("device", ["phone", pytest.param("desktop", marks=pytest.mark.slow)])
def test_pages_in_browser_fit_and_report_no_error(site: Path, device: str, tmp_path: Path) -> None:
    """On a phone and on a desktop no page scrolls sideways or logs an error."""
    with served(site) as url, browser(tmp_path) as tab:
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=WIDTHS[device],
            height=900,
            deviceScaleFactor=1,
            mobile=device == "phone",
        )
        too_wide = []
        for name in sorted(pages_of(site)):
            tab.open(url + name)
            assert tab.evaluate("document.title")
            width = tab.evaluate("document.documentElement.scrollWidth")
            if width > WIDTHS[device]:
                too_wide.append(f"{name}: {width}")
        assert too_wide == []
        assert tab.errors == []


# The texts of a picture that leave it, or touch another text, a line, or the edge of a box.
FAULTS_OF_PICTURE: Final = """(() => {
  const svg = document.documentElement, faults = [];
  const texts = [...svg.querySelectorAll("text")].map(each => [each.textContent, each.getBBox()]);
  const boxes = [...svg.querySelectorAll("rect")].slice(1).map(each => each.getBBox());
  const meets = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width
    && a.y < b.y + b.height && b.y < a.y + a.height;
  const holds = (a, b) => a.x <= b.x && a.y <= b.y
    && a.x + a.width >= b.x + b.width && a.y + a.height >= b.y + b.height;
  const points = [...svg.querySelectorAll("path")].flatMap(path => Array.from(
    {length: path.getTotalLength() / 2}, (_, n) => path.getPointAtLength(n * 2)));
  texts.forEach(([text, box], number) => {
    const inside = {x: box.x, y: box.y + 3, width: box.width, height: box.height - 6};
    if (!holds(svg.viewBox.baseVal, box)) faults.push(`${text} leaves the picture`);
    for (const [other, place] of texts.slice(number + 1))
      if (meets(inside, place)) faults.push(`${text} touches ${other}`);
    if (boxes.some(each => holds(each, box))) return;
    if (boxes.some(each => meets(each, inside))) faults.push(`${text} touches a box`);
    if (points.some(({x, y}) => meets(inside, {x, y, width: 0, height: 0})))
      faults.push(`${text} touches a line`);
  });
  return faults.join(", ") + (texts.length ? "" : "no text");
})()"""


def test_texts_of_pictures_in_browser_touch_nothing(tmp_path: Path) -> None:
    images = ROOT / "docs" / "images"
    with served(images) as url, browser(tmp_path) as tab:
        faults = {}
        for path in sorted(images.glob("*.svg")):
            tab.open(url + path.name)
            faults[path.name] = tab.evaluate(FAULTS_OF_PICTURE)
        assert faults.pop("favicon.svg") == "no text"
        assert set(faults.values()) == {""}, faults


def test_search_in_browser_finds_a_public_name(site: Path, tmp_path: Path) -> None:
    with served(site) as url, browser(tmp_path) as tab:
        tab.open(f"{url}search.html?q=serve_http")
        until = time.monotonic() + 10
        while not tab.evaluate("document.querySelectorAll('#search-results li').length"):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert "serve_http" in tab.evaluate("document.querySelector('#search-results').innerText")
        assert tab.errors == []
