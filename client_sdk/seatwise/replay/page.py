"""A match as one HTML file, which needs neither a server nor other files."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from seatwise.kits import OWN_KITS, find_kit
from seatwise.kits.frames import ALL_OPEN
from seatwise.replay.frame_builder import MatchReplay

SCRIPTS: Final = (
    "shapes.js",
    *(kit.viewer_script for kit in OWN_KITS if kit.viewer_script),
    "hosted.js",
    "viewer.js",
)
"""The modules, each after those that it imports. The last one exports `mount`."""

STYLES: Final = ("drawing.css", "viewer.css")

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function) ([A-Za-z]\w*))", re.MULTILINE)


@cache
def read_viewer_file(name: str) -> str:
    """Return one file of the viewer, one of `SCRIPTS` or `STYLES`."""
    return files("seatwise.replay").joinpath("viewer", name).read_text(encoding="utf-8")


@cache
def bundle_scripts() -> str:
    """Return all modules as one script that exports nothing: an inline script cannot import.

    Each module becomes a function that returns what it exports, under the name of its file.
    """
    return "".join(_wrap_module(name.removesuffix(".js"), read_viewer_file(name)) for name in SCRIPTS)


def _wrap_module(name: str, code: str) -> str:
    exported = _EXPORT.findall(code)
    inside = _IMPORT.sub(lambda found: f"const {found[1]} = {found[2]};", _EXPORT.sub("", code))
    return f"const {name} = (() => {{\n{inside}return {{ {', '.join(exported)} }};\n}})();\n"


@cache
def bundle_styles() -> str:
    """Return all style sheets as one."""
    return "".join(map(read_viewer_file, STYLES))


PAGE_STYLE: Final = """\
:root { color-scheme: light dark; }
body { margin: 0; background: #fbfaf7; color: #1d2327; font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 92rem; margin: 0 auto; padding: .75rem 1rem 0; }
h1 { font-size: 1.35rem; margin: .2rem 0; overflow-wrap: anywhere; }
.lead { margin: 0; }
.soft, caption { color: #5c666d; font-size: .9rem; }
code { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }
caption { text-align: left; }
th, td { border: 1px solid #cfcfc6; padding: .2rem .6rem; text-align: right; }
th[scope=row] { text-align: left; }
@media (prefers-color-scheme: dark) {
  body { background: #14181a; color: #e6e8e6; }
  .soft, caption { color: #9aa5aa; }
  th, td { border-color: #3a4347; }
}
@media (min-width: 112rem) { :root { font-size: 118%; } main { max-width: 120rem; } }
"""

START: Final = """\
const data = JSON.parse(document.querySelector("#replay").textContent);
viewer.mount(document.querySelector("#match"), data);
"""


def render_page(replay: MatchReplay) -> str:
    """Return the page. A content security policy forbids all that is not in it."""
    script = bundle_scripts() + START
    style = PAGE_STYLE + bundle_styles()
    title = escape(f"{find_kit(replay.game).title}: {', '.join(replay.names)}")
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_make_policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - Seatwise</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="lead">{escape(replay.frames[-1].says)}</p>
<div id="match"></div>
<noscript><p>To step through the match, allow scripts for this page. This is what happened:</p>{_render_steps(replay)}</noscript>
{_render_result(replay)}
{_render_facts(replay)}
</main>
<script type="application/json" id="replay">{_write_data(replay)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _make_policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash_source(script)}'; style-src '{_hash_source(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash_source(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _write_data(replay: MatchReplay) -> str:
    """Return the replay as JSON in which nothing can end the element around it."""
    return json.dumps(replay.to_json(), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _render_facts(replay: MatchReplay) -> str:
    seen = "" if replay.viewpoint == ALL_OPEN else f" Seen from seat {replay.viewpoint}."
    return (
        f'<p class="soft">{escape(replay.match)}.{seen} '
        f"Its record ends with the chain <code>{escape(replay.chain[:16])}</code>; "
        "<code>seatwise verify</code> checks it.</p>"
    )


def _render_result(replay: MatchReplay) -> str:
    rounds = replay.frames[-1].table.get("points", ()) if replay.frames else ()
    heads = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(rounds) + 1))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{each[seat]}</td>" for each in rounds)}'
        f"<td>{replay.points[seat]}</td><td>{replay.ranks[seat]}</td>"
        f"<td>{escape(replay.endings[seat].lower().replace('_', ' '))}</td></tr>"
        for seat, name in enumerate(replay.names)
    )
    return (
        '<div class="wide" role="region" aria-label="Result" tabindex="0"><table><caption>Points by round, and the result</caption>'
        f'<thead><tr><th scope="col">Bot</th>{heads}<th scope="col">Points</th><th scope="col">Rank</th>'
        f'<th scope="col">Ending</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _render_steps(replay: MatchReplay) -> str:
    return f'<ol start="0">{"".join(f"<li>{escape(frame.says)}</li>" for frame in replay.frames)}</ol>'
