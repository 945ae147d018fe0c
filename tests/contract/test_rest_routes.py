"""The table of URLs and the protos name the same methods, in the same terms."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import FieldDescriptor

from seatwise_server.rest.routes import HTTP_ROUTES, NO_BODY, WHOLE_BODY, HttpRoute
from seatwise_server.services.access import ACCESS

STREAMS_OF_BOTS = {"/seatwise.v1.LobbyService/Attend", "/seatwise.v1.PlayService/Play"}
ONLY_READING = ("Get", "List", "Watch")

each_route = pytest.mark.parametrize("route", HTTP_ROUTES, ids=lambda route: route.operation)


def test_every_method_but_the_streams_of_bots_has_exactly_one_url() -> None:
    methods = [route.operation for route in HTTP_ROUTES]
    assert len(methods) == len(set(methods))
    assert set(methods) | STREAMS_OF_BOTS == set(ACCESS)
    assert not set(methods) & STREAMS_OF_BOTS


def test_no_two_methods_share_a_verb_and_a_path() -> None:
    taken = [(route.verb, route.path) for route in HTTP_ROUTES]
    assert len(taken) == len(set(taken))


@each_route
def test_a_method_that_reads_is_a_get_and_no_other_is(route: HttpRoute) -> None:
    assert (route.verb == "GET") == route.method.name.startswith(ONLY_READING)
    assert (route.verb == "DELETE") == route.method.name.startswith("Delete")
    assert (route.body == NO_BODY) == (route.verb != "POST")


@each_route
def test_the_fields_of_a_route_are_fields_of_its_request(route: HttpRoute) -> None:
    fields = route.request.fields_by_name
    assert not route.path_field or fields[route.path_field].type == FieldDescriptor.TYPE_STRING
    if route.body not in (NO_BODY, WHOLE_BODY):
        assert fields[route.body].message_type is not None


@each_route
def test_a_query_holds_plain_values(route: HttpRoute) -> None:
    for field in route.query_fields:
        plain = field.message_type is None or field.message_type.full_name.startswith("google.protobuf.")
        assert plain, f"{route.operation}: {field.name} has no form in a query"


@each_route
def test_the_name_of_a_resource_goes_into_the_path_and_comes_out_again(route: HttpRoute) -> None:
    values = [f"v{place}" for place, _ in enumerate(route.path_parameters)]
    assert route.resource_name(values).count("/") == route.name_pattern.count("/")
    path = route.path.format(**dict(zip(route.path_parameters, values, strict=True)))
    assert path.startswith("/v1/")
    assert route.resource_name(values) in path


def test_names_of_variable_parts_are_singular() -> None:
    paths = {route.path for route in HTTP_ROUTES}
    assert {"/v1/matches/{match}/record", "/v1/bots/{bot}/versions/{version}:rotateToken"} <= paths
