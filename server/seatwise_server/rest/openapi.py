"""The API as an OpenAPI 3.1 document: the table of routes, the types of the protos, and their comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from seatwise.codec.json_values import JSON_VALUE
from seatwise_server.refusal import HTTP_STATUS, REASONS, write_error_body
from seatwise_server.rest.bot_relay import BOT_ROUTES, BotRoute
from seatwise_server.rest.http_call import HttpRefusal
from seatwise_server.rest.openapi_examples import ID_EXAMPLES, example_of_message
from seatwise_server.rest.routes import HTTP_ROUTES, NO_BODY, WHOLE_BODY, HttpRoute
from seatwise_server.services.access import ACCESS, SCOPES_OF_BOTS, SCOPES_OF_PEOPLE, Access
from seatwise_server.services.declarations import FieldRule, first_sentence, read_comments, rule_of_field
from seatwise_server.services.read_budget import is_read

# Messages and enums of the protos as JSON schemas.

Schema = dict[str, Any]

_INT32 = {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}
_SCALARS: dict[int, Schema] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64", "pattern": "^-?[0-9]{1,19}$"},
}
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    JSON_VALUE: {},  # any JSON
}

_RESOURCE_ID = "[a-z0-9][a-z0-9-]{0,62}"
ID_PATTERNS = {
    "bot": "[a-z]([a-z0-9-]{0,38}[a-z0-9])?",
    "version": "[a-z0-9]([a-z0-9.-]{0,18}[a-z0-9])?",
    "game": "[a-z][a-z0-9-]{0,39}",
    "match": "[a-z0-9]{1,40}",
    "referee": "[A-Za-z0-9._:-]{1,200}",
    "ladder": _RESOURCE_ID,
    "league": _RESOURCE_ID,
    "set": _RESOURCE_ID,
    "id": "[a-z2-7]{16}",
    "invite": "[a-z2-7]{16}",
    "owner": "[a-z][a-z0-9-]{0,39}",
}
"""The pattern of each variable part of a resource name."""


class SchemaRegistry:
    """The schemas of one document, under the names by which they refer to each other."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        """All that was referred to, by name."""

    def refer_to(
        self, type_: Descriptor | EnumDescriptor, *, is_input: bool = False, without: str = ""
    ) -> Schema:
        """Return a reference to the schema of this type, which is registered with all that it refers to.

        `without` is the field of a request that its URL holds.
        """
        is_input = is_input and isinstance(type_, Descriptor)
        name = schema_name(type_) + ("Input" if is_input and not type_.name.endswith("Request") else "")
        if name not in self.schemas:
            self.schemas[name] = {}  # a type may contain itself
            if isinstance(type_, EnumDescriptor):
                self.schemas[name] = _enum_schema(type_)
            else:
                self.schemas[name] = self._message_schema(type_, is_input=is_input, without=without)
        return {"$ref": f"#/components/schemas/{name}"}

    def needs_fields(self, reference: Schema) -> bool:
        """Return whether the schema of this reference has required fields."""
        return "required" in self.schemas[reference["$ref"].rpartition("/")[2]]

    def _message_schema(self, type_: Descriptor, *, is_input: bool, without: str) -> Schema:
        """A response always has the fields without presence. A request needs only those that the proto declares as required."""
        fields = [field for field in type_.fields if field.name != without]
        rules = [(field, rule_of_field(field)) for field in fields]
        required = [field.json_name for field, rule in rules if is_input and rule.required]
        if not is_input:
            required = [it.json_name for it, rule in rules if rule.always or not it.has_presence]
        return {
            "type": "object",
            **_description_of(type_),
            "properties": {field.json_name: self.field_schema(field, is_input=is_input) for field in fields},
            **({"required": required} if required else {}),
            **({"additionalProperties": False} if is_input else {}),
        }

    def field_schema(self, field: FieldDescriptor, *, is_input: bool) -> Schema:
        """Return the schema of a field, with its comment."""
        entry = map_value(field)
        schema = self._value_schema(entry or field, field, is_input=is_input)
        if entry is not None:
            schema = {"type": "object", "additionalProperties": schema}
        elif field.is_repeated:
            rule = rule_of_field(field)
            schema = {"type": "array", "items": schema}
            schema |= {"minItems": 1} if is_input and rule.required else {}
            schema |= {"maxItems": rule.max_items} if rule.max_items else {}
        if is_input and rule_of_field(field).output_only:
            schema["readOnly"] = True
        return {**schema, **_description_of(field)}

    def _value_schema(self, value: FieldDescriptor, field: FieldDescriptor, *, is_input: bool) -> Schema:
        if value.message_type is not None:
            if value.message_type.full_name in _WELL_KNOWN:
                return dict(_WELL_KNOWN[value.message_type.full_name])
            return self.refer_to(value.message_type, is_input=is_input)
        if value.enum_type is not None:
            return self.refer_to(value.enum_type)
        is_optional = is_input and not field.is_repeated and not rule_of_field(field).required
        return _scalar_schema(value, rule_of_field(field), may_be_empty=is_optional)


def schema_name(type_: Descriptor | EnumDescriptor) -> str:
    """Return the name of a type's schema: seatwise.games.ugo.v1.View is UgoView, seatwise.v1.Match.State is MatchState.

    GetMatchResponse is GetMatchAnswer: generators of clients make names of their own from an operation and the word "Response".
    """
    own = re.sub(r"^seatwise\.(?:games\.)?|(?:(?<=\.)|^)v1\.", "", type_.full_name)
    own = re.sub(r"Response(?=$|Item$)", "Answer", own)
    return "".join(part[:1].upper() + part[1:] for part in own.split("."))


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the field of a map's values, or None for a field that is no map."""
    type_ = field.message_type
    return type_.fields_by_name["value"] if type_ is not None and type_.GetOptions().map_entry else None


def _description_of(element: Descriptor | EnumDescriptor | FieldDescriptor) -> Schema:
    comment = read_comments().get(element.full_name)
    return {"description": comment} if comment else {}


def _enum_schema(type_: EnumDescriptor) -> Schema:
    """Return the schema of an enum, with the comments of its values. A client must expect values that a newer server adds."""
    names, comments = [value.name for value in type_.values], read_comments()
    told = [(name, comments.get(f"{type_.full_name}.{name}")) for name in names]
    values = [f"- `{name}`: {comment}" for name, comment in told if comment]
    return {
        "type": "string",
        "enum": names,
        "description": "\n".join([comments[type_.full_name], "", *values]),
    }


def _scalar_schema(field: FieldDescriptor, rule: FieldRule, *, may_be_empty: bool) -> Schema:
    """Return the schema of a scalar. A text that a request leaves out is read as the empty text."""
    schema = dict(_SCALARS[field.type])
    if schema["type"] == "integer":
        schema |= {} if rule.least is None else {"minimum": rule.least}
        schema |= {} if rule.most is None else {"maximum": rule.most}
    if field.type == FieldDescriptor.TYPE_STRING and rule.formats:
        schema["pattern"] = resource_pattern(rule.formats, may_be_empty=may_be_empty or rule.may_be_empty)
    elif field.type == FieldDescriptor.TYPE_STRING:
        schema |= {"maxLength": rule.max_length} if rule.max_length else {}
        schema |= {"minLength": 1} if rule.required else {}
    return schema


def resource_pattern(formats: Sequence[str], *, may_be_empty: bool = False) -> str:
    """Return the pattern of a resource name from its formats, as in ["ladders/{ladder}", "leagues/{league}"]."""
    forms = [re.sub(r"\{([a-z]+)\}", lambda found: ID_PATTERNS[found[1]], each) for each in formats]
    return f"^({'|'.join(forms)}){'?' if may_be_empty else ''}$"


# The errors in the OpenAPI document: their schema, and a response for each HTTP status with its reasons.

EVERY_CALL = (
    "INVALID_ARGUMENT",
    "TOKEN_UNKNOWN",
    "TOKEN_REVOKED",
    "TOKEN_EXPIRED",
    "SERVER_FULL",
    "INTERNAL",
    "STORE_UNAVAILABLE",
    "SERVER_STOPPING",
)
"""The reasons for which any call may be refused."""
HTTP_REASONS = {
    406: "NOT_ACCEPTABLE",
    408: "REQUEST_TIMEOUT",
    413: "REQUEST_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    431: "REQUEST_TOO_LARGE",
}
"""The reasons that only HTTP knows, by their status."""
ONLY_WITH_A_BODY = (413, 415)

_MESSAGES = {
    "TOKEN_MISSING": "send the token as a header (over gRPC as metadata): authorization: Bearer <token>",
    "TOKEN_UNKNOWN": "this token is unknown",
    "TOKEN_REVOKED": "this token is revoked",
    "TOKEN_EXPIRED": "this token has expired; ask its issuer for a new one",
    "SCOPE_MISSING": "this call needs a token with the scope operate",
    "NOT_ALLOWED": "this call needs the admin token or an access token, not the token of a bot",
    "NOT_FOUND": "there is no match 'matches/kq3v8mzt2nwa', or it is no longer kept",
    "ALREADY_EXISTS": "bots/lowest/versions/1 is registered; register another version, or rotate its token",
    "INVALID_ARGUMENT": "page_size is -1; it must be 0 (for 50) to 1000",
    "MALFORMED": "the body is not a JSON object",
    "NOT_ACCEPTABLE": "there is only application/json here",
    "REQUEST_TIMEOUT": "the request was not complete within 10 s",
    "REQUEST_TOO_LARGE": "the body of a request has at most 262144 bytes",
    "UNSUPPORTED_MEDIA_TYPE": "send the body as application/json",
    "MATCH_NOT_OVER": "matches/kq3v8mzt2nwa is not over; its record can be read when it is",
    "MATCH_VOIDED": "matches/kq3v8mzt2nwa was voided (ABORTED); it has no record",
    "SET_RUNNING": "the match shares its deals with others that are not over",
    "SET_OVER": "sets/round-1 is over or closed; its deals are known",
    "SERVER_FULL": "1000 matches wait for their bots",
    "RATE_EXCEEDED": "you read more than this server allows, or too many others do; ask less often, and for shorter lists",
    "QUOTA_EXCEEDED": "owners/joan has as many bots as it may have; have one deleted, or ask the operator for more",
    "INTERNAL": "the fault is ours; it has been logged",
    "ISSUER_UNAVAILABLE": "the keys of the issuer could not be fetched; try again in a minute",
    "STORE_UNAVAILABLE": "the store does not answer just now; try again",
    "NO_STREAM": "no such stream of this bot is open at this server: open GET /v1/play first",
    "RELAY_LOST": "the gateway has lost its link; open the stream again",
    "SERVER_STOPPING": "the server stops; come back, your matches wait",
}
"""An example of the message of each reason."""


def reasons_of(route: HttpRoute) -> list[str]:
    """List the reasons for which a call of this route may be refused, in the order of `REASONS`."""
    reasons = {*EVERY_CALL, *route.own_reasons}
    if ACCESS[route.operation] is not Access.PUBLIC:
        reasons |= {"TOKEN_MISSING", "NOT_ALLOWED"}
    if ACCESS[route.operation] in SCOPES_OF_PEOPLE | SCOPES_OF_BOTS:
        reasons.add("SCOPE_MISSING")
    if is_read(route.operation):
        reasons.add("RATE_EXCEEDED")
    if route.path_field:
        reasons.add("NOT_FOUND")
    if route.body != NO_BODY:
        reasons.add("MALFORMED")
        if ACCESS[route.operation] in SCOPES_OF_BOTS:
            reasons.add("NO_STREAM")
    return [reason for reason in REASONS if reason in reasons]


def _reasons_by_status(route: HttpRoute) -> dict[int, list[str]]:
    found = {
        status: [reason]
        for status, reason in HTTP_REASONS.items()
        if route.body != NO_BODY or status not in ONLY_WITH_A_BODY
    }
    for reason in reasons_of(route):
        found.setdefault(HTTP_STATUS[REASONS[reason]], []).append(reason)
    return dict(sorted(found.items()))


def _error_response(status: int, reasons: list[str]) -> dict[str, Any]:
    examples = {reason: {"value": _error_example(status, reason)} for reason in reasons}
    media = {"schema": {"$ref": "#/components/schemas/Error"}, "examples": examples}
    return {
        "description": "Refused with the reason " + " or ".join(f"`{reason}`" for reason in reasons),
        **_error_headers(status),
        "content": {"application/json": media},
    }


def _error_headers(status: int) -> dict[str, Any]:
    if status == 401:
        return {"headers": {"WWW-Authenticate": _header("Bearer: send a token")}}
    if status == 429:
        again = "Seconds to wait before the next attempt"
        limit = "Of reads or changes: the units that are left, and the seconds until all are there"
        policy = "Of reads or changes: the units at once, and the seconds in which they come back"
        told = {"Retry-After": again, "RateLimit": limit, "RateLimit-Policy": policy}
        return {"headers": {name: _header(text) for name, text in told.items()}}
    return {}


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _error_example(status: int, reason: str) -> Any:
    return json.loads(write_error_body(HttpRefusal(status, reason, _MESSAGES[reason])))


def error_schema() -> dict[str, Any]:
    """Return the schema of every error: google.rpc.Status as AIP-193 writes it, with exactly one ErrorInfo."""
    info = _closed_object(
        {
            "@type": {"const": "type.googleapis.com/google.rpc.ErrorInfo"},
            "reason": {
                "type": "string",
                "enum": sorted(REASONS),
                "description": "The reason, for a program to read.",
            },
            "domain": {"const": "seatwise"},
            "metadata": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "The facts of the message, by name.",
            },
        }
    )
    error = _closed_object(
        {
            "code": {"type": "integer", "description": "The HTTP status."},
            "status": {"type": "string", "description": "The name of the gRPC code."},
            "message": {"type": "string", "description": "A message for a person to read."},
            "details": {"type": "array", "minItems": 1, "maxItems": 1, "items": info},
        }
    )
    return {**_closed_object({"error": error}), "description": "An error, as AIP-193 writes it."}


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


Json = dict[str, Any]

_ABOUT = """\
The referee for bots that compete in card games with hidden hands.

These are the methods of the gRPC services in `proto/`, under URLs. The bodies are the messages in protobuf's JSON form: names in
lowerCamelCase, times as RFC 3339, bytes as base64, and 64-bit integers as strings. Reading needs no token.

Bots play over gRPC or WebSocket, or over HTTP at the URLs of LobbyService and PlayService: see docs/protocol.md.

Within v1, methods, fields and values are only added, so a client must ignore those that it does not know. One that is to go is marked
`deprecated` here and named in the changelog, for at least one minor version, and goes only with v2."""
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
_TOKEN_SCHEME: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token that the operator has given out.",
}
_RIGHTS = {
    Access.PUBLIC: "Needs no token.",
    Access.TOKEN: "Needs a token: the admin's, or the bot's own.",
    Access.JOIN: "Needs the token of an invite, or an ID token of the server's issuer.",
    **{it: f"Needs the admin token, or a token with the scope {it.value}." for it in SCOPES_OF_PEOPLE},
    **dict.fromkeys(
        SCOPES_OF_BOTS, "Needs the token of a bot. A server that knows no lobby has no such URL."
    ),
}


@cache
def openapi_json() -> bytes:
    """Return the document as it is served: the same bytes in every process."""
    return json.dumps(openapi_document(), separators=(",", ":"), ensure_ascii=False).encode()


@cache
def openapi_document() -> Json:
    """Return the document. The caller must not change it."""
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
        self._errors: dict[str, Json] = {}
        """By name. Operations with the same reasons share them."""

    def write_paths(self) -> Json:
        paths: dict[str, Json] = {}
        for route in HTTP_ROUTES:
            paths.setdefault(route.path, {})[route.verb.lower()] = self._operation(route)
        for it in BOT_ROUTES:
            paths.setdefault(it.route.path, {})[it.route.verb.lower()] = self._bot_operation(it)
        components = {
            "schemas": {**dict(sorted(self._registry.schemas.items())), "Error": error_schema()},
            "responses": dict(sorted(self._errors.items())),
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
            "security": [*([{}] if access is Access.PUBLIC else []), {"token": []}],
            "parameters": _parameters(route),
            **_request_body(route, self._registry),
            "responses": {
                "200": _success(route, self._registry),
                **({"304": _UNCHANGED} if has_etag(route) else {}),
                **{
                    str(status): self._error(status, its) for status, its in _reasons_by_status(route).items()
                },
            },
        }

    def _error(self, status: int, reasons: list[str]) -> Json:
        """Return a reference to the response."""
        words = "".join(word.capitalize() for reason in reasons for word in reason.split("_"))
        name = f"Error{status}{words}"
        self._errors[name] = _error_response(status, reasons)
        return {"$ref": f"#/components/responses/{name}"}

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
            "description": f"The id of the {'access token' if name == 'id' else name}.",
            "schema": {"type": "string", "pattern": f"^{ID_PATTERNS[name]}$"},
            "example": ID_EXAMPLES[name],
        }
        for name in route.path_parameters
    ]


def _query_parameter(field: FieldDescriptor) -> Json:
    schema = SchemaRegistry().field_schema(field, is_input=True)
    comment = schema.pop("description")
    return {
        "name": field.json_name,
        "in": "query",
        "required": rule_of_field(field).required,
        "description": comment,
        "schema": schema,
    }


def _request_body(route: HttpRoute, registry: SchemaRegistry) -> Json:
    """A body without a required field may be left out. One that could hold nothing is not described."""
    type_ = route.body_type
    if type_ is None or not [field for field in type_.fields if field.name != route.path_field]:
        return {}
    without = route.path_field if route.body == WHOLE_BODY else ""
    schema = registry.refer_to(type_, is_input=True, without=without)
    example = example_of_message(type_, is_input=True, without=without)
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": registry.needs_fields(schema), "content": content}}


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
    events = {
        "type": "string",
        "description": "Server-sent events. The data of each is the message as JSON; or an error, with the event `refused`; or `{}` with "
        "the event `end`, after which the stream is over.",
    }
    written = json.dumps(media["example"], separators=(",", ":"))
    return {
        "application/x-ndjson": media,
        "text/event-stream": {"schema": events, "example": f"data: {written}\n\n"},
    }
