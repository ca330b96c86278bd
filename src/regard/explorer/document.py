"""The page's document: one HTML file that needs nothing else, or the frame that a server fills.

Whatever comes from a user or a model is in the payload, as JSON in which no `<` stands; nothing of it is ever markup.
"""

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from regard.explorer.arrays import Plain
from regard.explorer.bundle import bundled
from regard.explorer.markup import Html, element, html

ENTRY, STYLE = "main.js", "page.css"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""of all that a server answers"""
NO_SCRIPT = "This page draws what a model does, for which it needs JavaScript. It loads nothing from anywhere."


@cache
def page_files() -> dict[str, str]:
    """The page's own modules and style, by name."""
    folder = files("regard.explorer").joinpath("page")
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith((".js", ".css")) and file.is_file()
    }


@cache
def _script() -> str:
    return bundled({name: text for name, text in page_files().items() if name.endswith(".js")}, ENTRY)


def page_size() -> int:
    """Letters of a file that are the page's own."""
    return len(_script()) + len(page_files()[STYLE])


def file_document(payload: Plain, arrays: str) -> str:
    """The whole page in one text: style, script, payload and arrays."""
    style, script = page_files()[STYLE], f"\n{_script()}"
    if "</style" in style.lower():
        raise ValueError(f"{STYLE}: has '</style', which would end the style that it stands in")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return _document(
        payload, policy=policy, style=element("style", Html(style)),
        scripts=[
            element("script", Html(arrays), type="text/plain", id="regard-arrays"),
            element("script", Html(script), type="module"),
        ],
    )  # fmt: skip


def live_document(payload: Plain) -> str:
    """The page that a server gives; it fetches the rest."""
    return _document(
        payload, policy=None, style=Html(f'<link rel="stylesheet" href="/page/{STYLE}">'),
        scripts=[element("script", type="module", src=f"/page/{ENTRY}")],
    )  # fmt: skip


def in_a_frame(document: str, title: str, *, height: int = 760) -> str:
    """The document inside another page, which it cannot reach, and which cannot reach it."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" title="{escape(title)}" width="100%" height="{height}" '
        f'style="border:0" srcdoc="{escape(document)}"></iframe>'
    )


def _document(payload: Plain, *, policy: str | None, style: Html, scripts: list[Html]) -> str:
    head = [Html('<meta charset="utf-8">')]
    if policy:
        head.append(Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'))
    head += [
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html('<link rel="icon" href="data:,">'),  # or a browser asks for one
        element("title", f"{payload['title']} · regard"),
        style,
    ]
    body = [
        element("div", id="regard"),
        element("noscript", element("p", NO_SCRIPT)),
        element("script", Html(script_json(payload)), type="application/json", id="regard-payload"),
        *scripts,
    ]
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!doctype html>\n{html(whole)}\n"


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
