"""Makes of docs/ what the site needs and the files lack: the URLs of the REST API, and links that leave docs/."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from seatwise_server.rest.openapi import openapi_document

REPOSITORY = "https://seatwise.example/repository/"
"""Where files beside docs/ are shown: the address of the repository's web pages."""
LINK = re.compile(r"(\]\()([^)#\s:]+)([^)]*\))")
DOCS = Path(__file__).parents[1]


def on_files(files: Any, config: Any) -> Any:
    """Adds the page of all URLs."""
    files.append(File.generated(config, "rest-urls.md", content=_url_page()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Points links to files that are no pages of the site to the repository."""
    folder = posixpath.dirname(page.file.src_uri)

    def point(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        inside = posixpath.relpath(target, "docs")
        if inside.startswith("..") or files.get_file_from_path(inside) is None:
            if not (DOCS.parent / target).exists():
                return match[0]  # mkdocs names the broken link
            if (DOCS / inside / "README.md").exists() and files.get_file_from_path(f"{inside}/README.md"):
                return f"{match[1]}{match[2].rstrip('/')}/README.md{match[3]}"
            return f"{match[1]}{REPOSITORY}{target})"
        return match[0]

    return LINK.sub(point, markdown)


def _url_page() -> str:
    lines = [
        "# URLs of the REST API",
        "",
        "A server describes them in full at `/v1/openapi.json`. [REST](rest.md) explains requests, responses and errors.",
        "",
        "| method | URL | what it does |",
        "|---|---|---|",
    ]
    for url, operations in sorted(openapi_document()["paths"].items()):
        for method, operation in operations.items():
            if isinstance(operation, dict) and "responses" in operation:
                summary = str(operation.get("summary", "")).replace("|", "\\|")
                lines.append(f"| {method.upper()} | `{url}` | {summary} |")
    return "\n".join([*lines, ""])
