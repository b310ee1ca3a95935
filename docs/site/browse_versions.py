"""Opens every version of a built site in a real browser and changes between them by the selector."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from docs.site.browse import BROWSERS, served


def check(browser: Browser, top: str, names: list[str], pictures: Path) -> list[str]:
    """What is wrong: a version that does not offer all others, or a choice that leads elsewhere."""
    found: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: found.append(f"console: {message.text}") if message.type == "error" else None)
    for name in names:
        page.goto(f"{top}{name}/tutorial/", wait_until="networkidle")
        page.wait_for_selector(".md-version__current", timeout=20_000)
        shown = page.inner_text(".md-version__current").split()[0]
        offered = [link.strip() for link in page.locator(".md-version__link").all_text_contents()]
        if (shown, offered) != (name, names):
            found.append(f"{name} shows {shown} and offers {offered}")
        page.hover(".md-version")
        page.screenshot(path=pictures / f"version-{name}.png")
        for other in [one for one in names if one != name][:1]:
            page.click(f".md-version__link:text-is('{other}')")
            page.wait_for_url(f"{top}{other}/**", timeout=20_000)
    page.goto(top, wait_until="networkidle")
    if page.url != f"{top}{names[0]}/":
        found.append(f"the top leads to {page.url}")
    page.close()
    return found


def main() -> int:
    """Serves the folder `site` of all versions and prints what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="pictures go to the folder `pictures` beside it")
    site: Path = parser.parse_args().site.resolve()
    names = [row["version"] for row in json.loads((site / "versions.json").read_text(encoding="utf-8"))]
    pictures = site.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    installed = next(filter(None, map(shutil.which, BROWSERS)))
    with served(site) as top, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        found = check(browser, top, names, pictures)
        browser.close()
    print(*found, f"{len(names)} versions, {len(found)} faults", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
