"""Builds the site: `python -m docs.site.build FOLDER` in an environment with the packages and the group `site`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from docs.site.stage import stage


def main() -> int:
    """Collects the pages and builds them; a warning fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="made anew; the site is in its folder `site`")
    folder = parser.parse_args().folder.resolve()
    stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
    return subprocess.run(command, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
