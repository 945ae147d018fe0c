"""Draws the pictures of the rules with the viewer's own drawings, and makes the pages that the server shows.

`make proto` makes the pages from the texts and the pictures. To draw the pictures again, which needs Node:

.venv/bin/python docs/rules/build_pages.py --draw
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "client_sdk" / "seatwise" / "rules"
GAMES = ("ugo", "ubongo")
NODE_TIMEOUT_S = 60
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'


def draw_pictures() -> dict[str, str]:
    """Return the pictures as the texts of SVG files, by file name. Node runs the same scripts as a browser."""
    from seatwise.replay.page import SCRIPTS, read_viewer_file

    example = (HERE / "example_layout.json").read_text(encoding="utf-8")
    with TemporaryDirectory() as name:
        folder = Path(name)
        for script in SCRIPTS:
            (folder / script).write_text(read_viewer_file(script), encoding="utf-8")
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "pictures.js").write_text((HERE / "pictures.js").read_text(encoding="utf-8"))
        command = ["node", str(folder / "pictures.js"), example]
        drawn = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=NODE_TIMEOUT_S
        ).stdout
    style = f"<style>{read_viewer_file('drawing.css')}</style>"
    return {name: _make_file(svg, style) for name, svg in json.loads(drawn).items()}


def _make_file(svg: str, style: str) -> str:
    """Return the picture with its colours in it, so that it can be shown by itself."""
    width, height = re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0]
    svg = svg.replace("<svg ", f'<svg {NAMESPACE} width="{width}" height="{height}" ', 1)
    return svg.replace(">", f">{style}", 1) + "\n"


def render_page(game: str) -> str:
    """Return the rules of a game as HTML without head and body, with the pictures in it."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    page = markdown.render((HERE / f"{game}.md").read_text(encoding="utf-8"))
    page = page.replace("<table>", '<div class="wide" role="group" aria-label="Table" tabindex="0"><table>')
    page = page.replace("</table>", "</table></div>")
    return re.sub(r'<p><img src="([\w-]+\.svg)" alt="([^"]*)" /></p>', _put_picture, page)


def _put_picture(found: re.Match[str]) -> str:
    picture = (HERE / found[1]).read_text(encoding="utf-8").strip()
    picture = re.sub(r"<style>.*?</style>", "", picture, flags=re.DOTALL).replace(f" {NAMESPACE}", "", 1)
    picture = re.sub(r' width="\d+" height="\d+"', "", picture, count=1)
    picture = re.sub(r'aria-label="[^"]*"', f'aria-label="{found[2]}"', picture, count=1)
    return f"<p>{picture}</p>"


def write_pages() -> list[Path]:
    """Write the pages; return their paths."""
    pages = {PAGES / f"{game}.html": render_page(game) for game in GAMES}
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    return list(pages)


def main() -> None:
    """Write the files."""
    if "--draw" in sys.argv[1:]:
        for name, svg in draw_pictures().items():
            (HERE / name).write_text(svg, encoding="utf-8")
    write_pages()


if __name__ == "__main__":
    main()
