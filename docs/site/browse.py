"""Opens a built site in a real browser: search, light and dark, a narrow screen, and nothing loaded from elsewhere."""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: Words that a reader looks for, and the page that the search must offer for each.
WORDS = {
    "checkpoint": "checkpoints/",
    "RunConfig": "api/estimator_core.config/",
    "EstimatorSpec": "api/estimator_core.specs/",
    "serve": "serving/",
    "Slurm": "launch/slurm/",
    "CSV": "files/",
    "TPU": "tpu/",
    "BinaryClassHead": "api/estimator_heads/",
    "gallery": "gallery/",
    "glossary": "glossary/",
    "CheckpointMismatchError": "errors/",
}
PAGES = ("", "tutorial/", "first_hour/", "gallery/", "guarantees/", "api/estimator_core.estimator/", "packages/heads/")
_WIDE, _NARROW = 1280, 390  # pixels


def check(browser: Browser, top: str, pictures: Path) -> list[str]:
    """What is wrong with the site, as a browser sees it."""
    found: list[str] = []
    for scheme in ("light", "dark"):
        for width in (_WIDE, _NARROW):
            context = browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 900}
            )
            page = context.new_page()
            _listen(page, top, found)
            for path in PAGES:
                page.goto(top + path, wait_until="networkidle")
                found += _looks(page, path, scheme, width)
                name = path.strip("/").replace("/", "-") or "home"
                page.screenshot(path=pictures / f"{name}-{scheme}-{width}.png")
            if width == _WIDE and scheme == "light":
                found += _searches(page, top, pictures)
            context.close()
    return found


def _listen(page: Page, top: str, found: list[str]) -> None:
    page.on("console", lambda message: found.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("request", lambda asked: None if asked.url.startswith((top, "data:", "blob:")) else found.append(asked.url))


def _looks(page: Page, path: str, scheme: str, width: int) -> list[str]:
    found: list[str] = []
    shown = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
    if shown != {"light": "default", "dark": "slate"}[scheme]:
        found.append(f"{path}: {scheme} shows {shown}")
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
        found.append(f"{path}: {wide} pixels on a screen of {width}")
    return found


def _searches(page: Page, top: str, pictures: Path) -> list[str]:
    found: list[str] = []
    for word, wanted in WORDS.items():
        page.goto(top, wait_until="networkidle")
        _open_search(page)
        page.keyboard.type(word)
        try:
            page.wait_for_selector(f'a[href*="{top}{wanted}"], a[href*="/{wanted}"] mark', timeout=10_000)
        except Exception as error:  # the browser's own, which names the selector
            found.append(f"search for {word} does not offer {wanted}: {str(error).splitlines()[0]}")
        page.screenshot(path=pictures / f"search-{word}.png")
    return found


def _open_search(page: Page) -> None:
    """Presses the key until the field has the focus: the page listens only once its scripts have run."""
    focused = "document.activeElement?.shadowRoot?.activeElement?.tagName === 'INPUT'"
    for _ in range(20):
        page.keyboard.press("Control+k")
        page.wait_for_timeout(500)
        if page.evaluate(focused):
            return
    raise AssertionError("the search does not open")


@contextmanager
def served(site: Path) -> Generator[str]:
    """Serves a folder for the time of the body; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def main() -> int:
    """Serves a folder to the browser of this machine and prints what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="the built site; pictures go to the folder `pictures` beside it")
    site: Path = parser.parse_args().site.resolve()
    pictures = site.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    installed = next(filter(None, map(shutil.which, BROWSERS)))
    with served(site) as top, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        found = check(browser, top, pictures)
        browser.close()
    print(*found, f"{len(WORDS)} words, {len(PAGES)} pages, {len(found)} faults", sep="\n")
    return 1 if found else 0


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing for a request."""


if __name__ == "__main__":
    sys.exit(main())
