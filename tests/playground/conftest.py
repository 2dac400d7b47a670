"""The playground: its Python side here, and the page as `build.sh` builds it, in Chromium."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = (ROOT / "docs" / "playground" / "python", ROOT / "docs" / "_ext")
MILLISECONDS = 300_000
"""After which an answer of the page is no longer waited for, on a busy machine too."""


@pytest.fixture(scope="session")
def playground() -> Iterator[Any]:
    """The module that answers the page; in the browser it lies beside the packages."""
    sys.path[:0] = map(str, PYTHON)
    try:
        import playground

        yield playground
    finally:
        for folder in PYTHON:
            sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the page, built now if it was not, and served as the docs say."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"the page is built with {program}, which is not here")
    build = ROOT / "docs" / "playground" / "build.sh"
    subprocess.run(["bash", str(build)], check=True, stdin=subprocess.DEVNULL)
    handler = partial(_Quiet, directory=str(ROOT / "build" / "playground" / "page"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium to open the page in")
    with driver.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(site: str, browser: Any) -> Iterator[Callable[..., Page]]:
    """Opens the page at a fragment; nothing on it may fail, and it asks nobody else."""
    pages: list[Page] = []

    def visit(fragment: str = "", **options: Any) -> Page:
        pages.append(Page(browser.new_page(**options), site))
        pages[-1].visit(fragment)
        return pages[-1]

    yield visit
    for page in pages:
        page.tab.close()
        assert not page.faults
        assert all(address.startswith((site, "blob:", "data:")) for address in page.asked)


class Page:
    """One tab with the page in it.

    Attributes:
        tab: of the browser.
        faults: what was raised on the page, or written to its console.
        asked: addresses that were asked for.
    """

    def __init__(self, tab: Any, site: str) -> None:
        self.tab, self._site = tab, site
        self.faults: list[str] = []
        self.asked: list[str] = []
        tab.set_default_timeout(MILLISECONDS)
        tab.on("pageerror", lambda error: self.faults.append(str(error)))
        tab.on("console", lambda said: self.faults.append(said.text))
        tab.on("request", lambda request: self.asked.append(request.url))

    def visit(self, fragment: str) -> None:
        """Goes to a fragment, another than that there is, and waits for its answers."""
        self.tab.evaluate("document.documentElement.dataset.state = 'left'")
        self.tab.goto(f"{self._site}{fragment}")
        self.answered()

    def answered(self) -> None:
        """Waits until all that stands in the editor is answered."""
        self.tab.wait_for_selector("html[data-state=done]", state="attached")

    def write(self, text: str) -> None:
        """Puts a text in place of that in the editor, as a reader does."""
        self.tab.click("#editor .cm-content")
        self.tab.keyboard.press("Control+A")
        self.tab.evaluate("document.documentElement.dataset.state = 'written'")
        self.tab.keyboard.insert_text(text)
        self.answered()

    def module(self) -> bytes:
        """The file that a reader gets."""
        self.tab.click("#tab-module")
        with self.tab.expect_download() as download:
            self.tab.click("#download")
        return Path(download.value.path()).read_bytes()

    def compare(self, other: str, conditions: bool) -> tuple[str, str]:
        """The verdict on the text and a shipped spec: its word, and what it says."""
        self.tab.click("#tab-equal")
        self.tab.select_option("#other", other)
        self.tab.set_checked("#conditions", conditions)
        self.tab.click("#compare")
        self.tab.wait_for_selector("#compare:enabled")
        return self.tab.inner_text("#verdict .badge"), self.tab.inner_text("#verdict")
