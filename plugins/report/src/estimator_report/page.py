"""Joins the sections to one HTML page that loads nothing."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins, default_plugins
from estimator_core.storage import draft_of
from estimator_report.contract import ReportSection, ReportSource

_KIND = "report_section"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.2rem;border-bottom:1px solid #d0d7de;padding-bottom:.3rem;margin-top:2.5rem}
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #e7ebef}
th:first-child,td:first-child,.words td{text-align:left}
details{margin:.5rem 0}summary{cursor:pointer}section{overflow-x:auto}
.bad{color:#b42318;font-weight:600}.quiet{color:#5b6670}
.charts{display:flex;flex-wrap:wrap;gap:1rem}svg{background:#fafbfc;border:1px solid #e7ebef;border-radius:4px}
svg text{font:11px system-ui,sans-serif;fill:#5b6670}svg .title{font-size:13px;fill:#1b1f24}
"""
#: The policy of the page. It loads nothing and runs nothing, whatever the names in the data contain.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def build_page(title: str, source: ReportSource, sections: Iterable[ReportSection]) -> str:
    """Returns the page as HTML.

    Args:
        title: the title of the page.
        source: the subject of the page.
        sections: the sections, in any order. The page sorts them by `order`. Sections without content are skipped.

    Example:
        >>> source = ReportSource(model_dir=Path("runs/x"), evaluation="", results={})
        >>> "<h1>An &lt;x&gt;</h1>" in build_page("An <x>", source, [])
        True
    """
    parts: list[str] = []
    for section in sorted(sections, key=lambda one: (one.order, one.title)):
        body = section.body(source)
        if body is not None:
            parts.append(f"<section><h2>{html.escape(section.title)}</h2>\n{body}</section>")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{html.escape(title)}</h1>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def write_report(source: ReportSource, path: Path, *, plugins: Plugins | None = None) -> Path:
    """Writes the page with the sections of all plugins, and returns its path.

    Args:
        source: the subject of the page, see `read_source`.
        path: the path of the file. An existing file is replaced atomically.
        plugins: the plugins with the sections. None: the installed ones.

    Raises:
        ArgumentError: the file cannot be written there.
    """
    found = default_plugins() if plugins is None else plugins
    sections = [found.get(_KIND, name)() for name in found.names(_KIND)]
    name = "run" if not source.results else f"evaluation {source.evaluation!r}" if source.evaluation else "evaluation"
    text = build_page(f"{source.model_dir.name}: {name}", source, sections)
    return replace_page(path, text)


def replace_page(path: Path, text: str) -> Path:
    """Writes a page atomically, with its directory, and returns its path.

    Args:
        path: the path of the file. An existing file is replaced.
        text: the HTML of the page.

    Raises:
        ArgumentError: the file cannot be written there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     replace_page(Path(folder, "pages", "run.html"), "<p>9</p>").read_text()
        '<p>9</p>'
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        file = isinstance(error, FileExistsError)  # the error of mkdir
        why = f"{path.parent} is a file, not a directory" if file else error.strerror
        raise ArgumentError(f"{path} cannot be written: {why}.") from error
    return path
