"""The page as one HTML file: hand-written parts, put together as they stand, under a strict content policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    "stats.js",
    "betting.js",
    "dom.js",
    "numbers.js",
    "chunks.js",
    "cases.js",
    "search.js",
    "filters.js",
    "diff.js",
    "tables.js",
    "bars.js",
    "charts.js",
    "overview.js",
    "compare.js",
    "report.js",
    "list.js",
    "case.js",
    "runs.js",
    "main.js",
)
"""In the order in which they use each other."""


def page(title: str, overview: Mapping[str, Any], chunks: Iterable[tuple[str, str]] = ()) -> str:
    """The page's text.

    Args:
        title: what the browser's window is called.
        overview: what the page knows at once.
        chunks: name and text of the compressed chunks that are in the page itself.
    """
    style, frame_style, script = asset("style.css"), asset("frame.css"), program()
    parts = {
        "TITLE": html.escape(title),
        "POLICY": policy(script, style, frame_style),
        "STYLE": style,
        "OVERVIEW": inert_json({**overview, "frame_style": frame_style}),
        "CHUNKS": "\n".join(
            f'<script type="text/plain" id="{html.escape(name)}">{text}</script>' for name, text in chunks
        ),
        "SCRIPT": script,
    }
    # One pass: what a part says is never taken for the name of another.
    return re.sub(r"<!--([A-Z]+)-->", lambda match: parts[match[1]], asset("page.html"))


@cache
def asset(name: str) -> str:
    """A hand-written part."""
    return (ASSETS / name).read_text("utf-8")


@cache
def program() -> str:
    """All scripts as one."""
    return '"use strict";\n' + "\n".join(asset(name) for name in SCRIPTS)


def policy(script: str, *styles: str) -> str:
    """The content security policy: this script with the chunks that it loads, these styles, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)} 'strict-dynamic'",
            f"style-src {' '.join(_hash(style) for style in styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever a model wrote into it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode("utf-8", "replace").decode("utf-8")
