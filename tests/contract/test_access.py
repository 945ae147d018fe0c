"""Every method of the protos has a right in the one table, an implementation, and a door that asks the table."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import get_args, get_type_hints

import pytest
from doubles.operations import operations_on
from google.protobuf.descriptor import MethodDescriptor
from starlette.requests import Request

from seatwise import v1
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.rest_app import endpoint_of
from seatwise_server.rest.routes import HTTP_ROUTES, HttpRoute
from seatwise_server.services.access import ACCESS, SCOPES_OF_BOTS, Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.operations import Operation, operations_of, snake_case
from seatwise_server.store import Store

METHODS: dict[str, MethodDescriptor] = {
    f"/{service.full_name}/{method.name}": method
    for each in iter_modules(v1.__path__)
    if each.name.endswith("_service_pb2")
    for service in import_module(f"seatwise.v1.{each.name}").DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
STREAMS_OF_BOTS = {method for method, it in METHODS.items() if it.client_streaming}


def operations() -> dict[str, Operation]:
    store = Store(SimpleNamespace())  # type: ignore[arg-type]  # nothing is asked of it
    return operations_on(store)


def test_the_table_of_rights_names_every_method_of_the_protos_and_no_other() -> None:
    assert set(ACCESS) == set(METHODS)


def test_every_method_is_an_operation_or_a_stream_of_a_bot() -> None:
    assert set(operations()) | STREAMS_OF_BOTS == set(METHODS)
    assert {ACCESS[method] for method in STREAMS_OF_BOTS} == SCOPES_OF_BOTS


def test_a_method_that_changes_something_needs_a_token() -> None:
    reading = ("Get", "List", "Watch")
    for method, access in ACCESS.items():
        if not method.rpartition("/")[2].startswith(reading):
            assert access is not Access.PUBLIC, method


@pytest.mark.parametrize("method", sorted(set(METHODS) - STREAMS_OF_BOTS))
def test_an_operation_takes_the_caller_and_the_request_and_returns_the_response_of_its_proto(
    method: str,
) -> None:
    operation, proto = operations()[method], METHODS[method]
    hints = get_type_hints(operation.handle)
    returned = hints.pop("return")
    assert (
        operation.is_streaming
        == proto.server_streaming
        == inspect.isasyncgenfunction(inspect.unwrap(operation.handle))
    )
    assert hints == {"caller": Caller, "request": operation.request_type}
    assert (get_args(returned) or (returned,))[0] is operation.response_type
    assert operation.request_type.DESCRIPTOR is proto.input_type
    assert operation.response_type.DESCRIPTOR is proto.output_type
    assert operation.access is ACCESS[method]


def test_a_method_without_an_implementation_or_a_right_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="list_games"):
        operations_of({"seatwise.v1.GameService": object()})
    monkeypatch.delitem(ACCESS, "/seatwise.v1.GameService/ListGames")
    with pytest.raises(KeyError, match="ListGames"):
        operations_of({"seatwise.v1.GameService": SimpleNamespace(list_games=None, get_game=None)})


# The REST door


class Asked(Exception):
    """What the door has asked for."""

    def __init__(self, method: str, token: str | None) -> None:
        super().__init__()
        self.method, self.token = method, token


class AsksOnly:
    """An authenticator that tells what it was asked, and lets nobody pass."""

    async def authorize(self, method: str, token: str | None, _peer: str = "") -> Caller:
        raise Asked(method, token)


@pytest.mark.parametrize("route", HTTP_ROUTES, ids=lambda route: route.operation)
async def test_every_url_asks_the_table_before_anything_is_done(route: HttpRoute) -> None:
    """Before it reads the body too, and with the token of the header alone."""
    operation = operations()[route.operation]
    unused = replace(operation, handle=None)  # type: ignore[arg-type]  # a call of it fails
    endpoint = endpoint_of(unused, route, AsksOnly(), EventStreams())  # type: ignore[arg-type]
    headers = [(b"authorization", b"Bearer t"), (b"content-length", b"9"), (b"content-type", b"x/y")]
    scope = {
        "type": "http", "method": route.verb, "path": "/", "query_string": b"token=q", "headers": headers, "client": None,
    }  # fmt: skip
    with pytest.raises(Asked) as asked:
        await endpoint(Request(scope), ["x"] * len(route.path_parameters))
    assert (asked.value.method, asked.value.token) == (route.operation, "t")


def test_names_of_methods_become_names_of_functions() -> None:
    assert snake_case("GetMatch") == "get_match"
    assert snake_case("ListLadderResults") == "list_ladder_results"


ROOT = Path(__file__).resolve().parents[2]


def test_every_refusal_of_an_argument_names_its_field() -> None:
    """The doors of gRPC, REST and WebSockets share these folders."""
    nameless = [
        f"{path.name}:{call.lineno}"
        for folder in ("services", "lobby", "play", "rpc")
        for path in sorted((ROOT / "server" / "seatwise_server" / folder).rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value == "INVALID_ARGUMENT"
        and "field" not in {keyword.arg for keyword in call.keywords}
    ]
    assert nameless == []
