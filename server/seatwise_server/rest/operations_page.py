"""The OpenAPI document as one page for people: it has no script, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from seatwise_server.rest.openapi import openapi_document
from seatwise_server.rest.openapi_examples import ID_EXAMPLES

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OperationsPage:
    """The page and the policy that it needs."""

    html: bytes
    content_security_policy: str
    """It allows the page's own style and nothing else."""


@cache
def operations_page() -> OperationsPage:
    """Return the page of this version: the same bytes in every process."""
    style = (files("seatwise_server.rest") / "templates" / "operations.css").read_text(encoding="utf-8")
    told = {"document": openapi_document(), "style": Markup(style), "services": _operations_by_service()}
    html = _environment().get_template("operations.html.j2").render(**told)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return OperationsPage(html.encode(), policy)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("seatwise_server.rest"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": _to_prose,
        "inline": _to_inline,
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "type": _type_of,
        "curl": _curl_command,
        "resolve": _resolve_reference,
    }
    return environment


def _operations_by_service() -> list[tuple[Json, list[Json]]]:
    """Return each tag with its operations, which know their verb and path."""
    document = openapi_document()
    operations = [
        {"verb": verb.upper(), "path": path, **operation}
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    ]
    return [
        (tag, [operation for operation in operations if tag["name"] in operation["tags"]])
        for tag in document["tags"]
    ]


def _to_prose(text: str) -> Markup:
    return Markup("").join(_to_block(block) for block in text.split("\n\n"))


def _to_block(block: str) -> Markup:
    if block.startswith("- "):
        items = Markup("").join(
            Markup("<li>{}</li>").format(_to_inline(item[2:])) for item in block.split("\n")
        )
        return Markup("<ul>{}</ul>").format(items)
    return Markup("<p>{}</p>").format(_to_inline(block))


def _to_inline(text: str) -> Markup:
    """Return the text with what stands in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _type_of(schema: Json) -> Markup:
    """Return the type of a value in a few words, with a link to the type where there is one."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if schema.get("type") == "array":
        return Markup("list of {}").format(_type_of(schema["items"]))
    if isinstance(schema.get("additionalProperties"), dict):
        return Markup("map of {}").format(_type_of(schema["additionalProperties"]))
    shown = schema.get("format") or schema.get("contentEncoding") or schema.get("type", "value")
    return escape(f"{shown} as text" if shown == "int64" else shown)


def _resolve_reference(value: Json) -> Json:
    """Return the component that a reference names, or the value itself."""
    if "$ref" not in value:
        return value
    _, *keys = value["$ref"].split("/")
    found: Json = openapi_document()
    for key in keys:
        found = found[key]
    return found


def _curl_command(operation: Json) -> str:
    """Return a command line for this operation, with the examples of its parameters."""
    path = operation["path"]
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    words = ["curl"]
    if operation["verb"] == "DELETE":
        path = path.replace(ID_EXAMPLES["bot"], "retired")  # the other examples need theirs
        words.append("-X DELETE")
    if operation["security"][0]:
        words.append('-H "Authorization: Bearer $TOKEN"')
    if body := operation.get("requestBody"):
        example = json.dumps(body["content"]["application/json"]["example"], ensure_ascii=False)
        words += ["-H 'Content-Type: application/json'", "-d '" + example.replace("'", "'\\''") + "'"]
    if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
        words.append("-N")
    return " \\\n  ".join([*words, f'"$SEATWISE{path}"']).replace("curl \\\n  ", "curl ", 1)
