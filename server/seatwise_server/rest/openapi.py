"""The API as an OpenAPI 3.1 document: the table of routes, the types of the protos, and their comments."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from seatwise_server.rest.bot_routes import BOT_ROUTES, BotRoute
from seatwise_server.rest.openapi_errors import ErrorResponses, error_schema
from seatwise_server.rest.openapi_examples import ID_EXAMPLES, example_of_message
from seatwise_server.rest.openapi_schemas import ID_PATTERNS, SchemaRegistry
from seatwise_server.rest.routes import HTTP_ROUTES, NO_BODY, WHOLE_BODY, HttpRoute
from seatwise_server.services.access import ACCESS, SCOPES_OF_BOTS, SCOPES_OF_PEOPLE, Access
from seatwise_server.services.declarations import first_sentence, read_comments, rule_of_field

Json = dict[str, Any]

_ABOUT = """\
The referee for bots that compete in card games with hidden hands.

These are the methods of the gRPC services in `proto/`, under URLs. The bodies are the messages in protobuf's JSON form: names in
lowerCamelCase, times as RFC 3339, bytes as base64, and 64-bit integers as strings. Reading needs no token.

Bots play over gRPC or WebSocket, or over HTTP at the URLs of LobbyService and PlayService: see docs/protocol.md."""
_RECORD_CONTENT: Json = {
    "application/json": {
        "schema": {
            "type": "object",
            "description": "The line of the record, byte for byte. docs/record-format.md describes it.",
        }
    }
}
_ETAG: Json = {"description": "The version of the answer.", "required": True, "schema": {"type": "string"}}
_UNCHANGED: Json = {
    "description": "Not modified: the answer is the one whose ETag the request named",
    "headers": {"ETag": _ETAG},
}
_IF_NONE_MATCH: Json = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of an answer that you have. If it is still the newest, you get 304 and no body.",
    "schema": {"type": "string"},
}
_NOTHING: Json = {"type": "object", "maxProperties": 0}
_TOKEN_SCHEME: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token that the operator has given out.",
}
_SECURITY: dict[Access, list[Json]] = {
    Access.PUBLIC: [{}, {"token": []}],
    Access.TOKEN: [{"token": []}],
    Access.JOIN: [{"token": []}],
    **{scope: [{"token": []}] for scope in SCOPES_OF_PEOPLE},
    **{scope: [{"token": []}] for scope in SCOPES_OF_BOTS},
}
_RIGHTS = {
    Access.PUBLIC: "Needs no token.",
    Access.TOKEN: "Needs a token: the admin's, or the bot's own.",
    Access.JOIN: "Needs the text of an invite, or an ID token of the server's issuer, as the token.",
    **{it: f"Needs the admin token, or a token with the scope {it.value}." for it in SCOPES_OF_PEOPLE},
    **dict.fromkeys(
        SCOPES_OF_BOTS, "Needs the token of a bot. A server that knows no lobby has no such URL."
    ),
}


@cache
def openapi_json() -> bytes:
    """Returns the document as it is served: the same bytes in every process."""
    return json.dumps(openapi_document(), separators=(",", ":"), ensure_ascii=False).encode()


@cache
def openapi_document() -> Json:
    """Returns the document. The caller must not change it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Seatwise",
            "version": "v1",
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "contact": {"name": "The operator of this server"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "tags": _tags(),
        **_DocumentWriter().write_paths(),
    }


def _tags() -> list[Json]:
    routes = (*HTTP_ROUTES, *(it.route for it in BOT_ROUTES))
    services = {route.method.containing_service.full_name: None for route in routes}
    return [{"name": name.rpartition(".")[2], "description": read_comments()[name]} for name in services]


class _DocumentWriter:
    """Writes the paths of all routes, and the components that they refer to."""

    def __init__(self) -> None:
        self._registry = SchemaRegistry()
        self._errors = ErrorResponses()

    def write_paths(self) -> Json:
        paths: dict[str, Json] = {}
        for route in HTTP_ROUTES:
            paths.setdefault(route.path, {})[route.verb.lower()] = self._operation(route)
        for it in BOT_ROUTES:
            paths.setdefault(it.route.path, {})[it.route.verb.lower()] = self._bot_operation(it)
        components = {
            "schemas": {**self._registry.all_schemas(), "Error": error_schema()},
            "responses": self._errors.all_responses(),
            "securitySchemes": {"token": _TOKEN_SCHEME},
        }
        return {"paths": paths, "components": components}

    def _operation(self, route: HttpRoute) -> Json:
        comment = read_comments()[route.method.full_name]
        access = ACCESS[route.operation]
        return {
            "operationId": route.method.name[:1].lower() + route.method.name[1:],
            "tags": [route.method.containing_service.name],
            "summary": first_sentence(comment),
            "description": f"{comment} {_RIGHTS[access]}",
            "security": _SECURITY[access],
            "parameters": _parameters(route),
            **_request_body(route, self._registry),
            "responses": {
                "200": _success(route, self._registry),
                **({"304": _UNCHANGED} if has_etag(route) else {}),
                **self._errors.refer_to(route),
            },
        }

    def _bot_operation(self, it: BotRoute) -> Json:
        """The methods of bots are streams in both directions: over HTTP each direction is an operation of its own."""
        operation = self._operation(it.route)
        responses = operation["responses"]
        if it.route.body == NO_BODY:
            responses["200"]["description"] = it.success
            simple = [field for field in it.route.query_fields if field.message_type is None]
            operation["parameters"] = list(map(_query_parameter, simple))
        else:
            del responses["200"]
            operation["requestBody"]["content"]["application/json"]["example"] = it.example
            operation["responses"] = {"204": {"description": it.success}, **responses}
        about = f"{it.description} {_RIGHTS[ACCESS[it.route.operation]]}"
        return operation | {"operationId": it.operation_id, "summary": it.summary, "description": about}


def has_etag(route: HttpRoute) -> bool:
    """Whether the answer is kept by the caller, who may ask whether it is still the newest."""
    return route.verb == "GET" and not route.method.server_streaming


def _parameters(route: HttpRoute) -> list[Json]:
    known = [_IF_NONE_MATCH] if has_etag(route) else []
    return [*_path_parameters(route), *map(_query_parameter, route.query_fields), *known]


def _path_parameters(route: HttpRoute) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The id of the {name}.",
            "schema": {"type": "string", "pattern": f"^{ID_PATTERNS[name]}$"},
            "example": ID_EXAMPLES[name],
        }
        for name in route.path_parameters
    ]


def _query_parameter(field: FieldDescriptor) -> Json:
    schema = SchemaRegistry().field_schema(field, is_input=True)
    comment = schema.pop("description")
    if field.name == "page_size":
        schema["minimum"] = 0
    return {
        "name": field.json_name,
        "in": "query",
        "required": rule_of_field(field).is_required,
        "description": comment,
        "schema": schema,
    }


def _request_body(route: HttpRoute, registry: SchemaRegistry) -> Json:
    """A body without a required field may be left out."""
    if route.body == NO_BODY:
        return {}
    if route.body == WHOLE_BODY:
        schema = registry.message_schema(route.request, is_input=True, without=route.path_field)
        example = example_of_message(route.request, is_input=True, without=route.path_field)
    else:
        type_ = cast(Descriptor, route.request.fields_by_name[route.body].message_type)
        schema = registry.refer_to(type_, is_input=True)
        example = example_of_message(type_, is_input=True)
    content = {"application/json": {"schema": schema, "example": example}}
    is_needed = "$ref" in schema or "required" in schema
    return {"requestBody": {"required": is_needed, "content": content}}


def _success(route: HttpRoute, registry: SchemaRegistry) -> Json:
    type_: Descriptor = route.method.output_type
    return {
        "description": first_sentence(read_comments()[type_.full_name]),
        **({"headers": {"ETag": _ETAG}} if has_etag(route) else {}),
        "content": _RECORD_CONTENT if route.method.name == "GetRecord" else _content(route, registry),
    }


def _content(route: HttpRoute, registry: SchemaRegistry) -> Json:
    type_: Descriptor = route.method.output_type
    media = {"schema": registry.refer_to(type_), "example": example_of_message(type_, is_input=False)}
    if not route.method.server_streaming:
        return {"application/json": media}
    content = {"anyOf": [media["schema"], {"$ref": "#/components/schemas/Error"}, _NOTHING]}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    event = {
        "type": "object",
        "description": "A server-sent event: a message; an error with the event `refused`; or nothing with the event `end`, after "
        "which the stream is over.",
        "properties": {"event": {"type": "string"}, "data": data},
        "required": ["data"],
    }
    return {"text/event-stream": {"schema": event}, "application/x-ndjson": media}
