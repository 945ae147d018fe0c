"""The OpenAPI document is valid, complete and written down, and each of its examples is one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.openapi_golden import DIGESTS, digests, parts
from jsonschema import Draft202012Validator

from seatwise_server.league.rules import schedule_of
from seatwise_server.league.settings import League
from seatwise_server.refusal import REASONS
from seatwise_server.rest.bot_relay import BOT_ROUTES
from seatwise_server.rest.openapi import openapi_document, openapi_json, reasons_of, schema_name
from seatwise_server.rest.operations_page import operations_page
from seatwise_server.rest.routes import HTTP_ROUTES
from seatwise_server.services.access import ACCESS, OWN_METHODS, Access
from seatwise_server.services.read_budget import is_read

ROUTES = (*HTTP_ROUTES, *(it.route for it in BOT_ROUTES))
RULES = Path(__file__).with_name("spectral.yaml")
DOCUMENT = openapi_document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, part) for name, part in parts(DOCUMENT) if " /v1/" in name)


def medias() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body of a request, an answer and an error."""
    for name, operation in operations():
        for type_, media in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{name} {type_}", media
        for type_, media in operation["responses"].get("200", {}).get("content", {}).items():
            yield f"{name} 200 {type_}", media
    for name, response in DOCUMENT["components"]["responses"].items():
        yield name, response["content"]["application/json"]


each_operation = pytest.mark.parametrize(
    "operation", [pytest.param(operation, id=name) for name, operation in operations()]
)


def test_the_document_is_as_it_is_written_down() -> None:
    now, written = digests().splitlines(), DIGESTS.read_text(encoding="utf-8").splitlines()
    changed = sorted({line.partition(" ")[2] for line in {*now} ^ {*written}})
    assert changed == [], "run `make openapi` if these are to change"
    assert now == written, "the order has changed: run `make openapi`"


def test_the_served_document_is_the_same_and_valid() -> None:
    served = json.loads(openapi_json())
    assert served == DOCUMENT
    from openapi_spec_validator import validate  # it takes a second, and only this test needs it

    validate(served)


def test_every_route_is_an_operation() -> None:
    assert {name for name, _ in operations()} == {f"{route.verb} {route.path}" for route in ROUTES}


@each_operation
def test_an_operation_is_described_with_all_its_parameters(operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert all(parameter["description"] for parameter in operation["parameters"])


@pytest.mark.parametrize("name", sorted(SCHEMAS.keys() - {"Error"}))
def test_a_type_is_described_with_all_its_fields(name: str) -> None:
    assert SCHEMAS[name]["description"]
    assert all(field["description"] for field in SCHEMAS[name].get("properties", {}).values())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.verb} {route.operation}")
def test_an_operation_demands_a_token_where_the_method_does(route: Any) -> None:
    operation = DOCUMENT["paths"][route.path][route.verb.lower()]
    is_public = ACCESS[route.operation] is Access.PUBLIC
    assert operation["security"] == ([{}] if is_public else []) + [{"token": []}]
    refused = DOCUMENT["components"]["responses"][operation["responses"]["401"]["$ref"].rpartition("/")[2]]
    assert ("TOKEN_MISSING" in refused["content"]["application/json"]["examples"]) is not is_public


@pytest.mark.parametrize("media", [pytest.param(media, id=name) for name, media in medias()])
def test_an_example_has_the_schema_beside_it(media: dict[str, Any]) -> None:
    validator = Draft202012Validator({**media["schema"], "components": DOCUMENT["components"]})
    examples = [example["value"] for example in media.get("examples", {}).values()]
    for example in [*examples, *([media["example"]] if "example" in media else [])]:
        assert not [error.message for error in validator.iter_errors(example)]


def test_the_settings_in_the_example_of_a_league_make_a_schedule() -> None:
    posted = DOCUMENT["paths"]["/v1/leagues"]["post"]["requestBody"]["content"]["application/json"]["example"]
    league = League.from_json(json.loads(posted["settings"]))
    assert schedule_of(league)
    assert posted["name"] == f"leagues/{league.name}"


def test_reasons_of_single_methods_are_documented_reasons() -> None:
    assert {reason for route in ROUTES for reason in route.own_reasons} <= set(REASONS)


def test_changes_that_a_quota_counts_say_so() -> None:
    for route in HTTP_ROUTES:
        counted = ACCESS[route.operation] in (Access.TOKEN, Access.JOIN) or route.operation in OWN_METHODS
        if counted and not is_read(route.operation):
            assert "QUOTA_EXCEEDED" in reasons_of(route), route.operation


def test_bots_over_http_are_described_as_streams_of_lines_and_posts_without_an_answer() -> None:
    for path in ("/v1/attendance", "/v1/play"):
        stream, post = DOCUMENT["paths"][path]["get"], DOCUMENT["paths"][path]["post"]
        assert set(stream["responses"]["200"]["content"]) == {"application/x-ndjson", "text/event-stream"}
        assert "content" not in post["responses"]["204"]
        assert post["requestBody"]["content"]["application/json"]["example"]
    parameters = DOCUMENT["paths"]["/v1/attendance"]["get"]["parameters"]
    assert [each["name"] for each in parameters] == ["queues", "maxMatches"]
    assert DOCUMENT["paths"]["/v1/play"]["get"]["parameters"] == []


def test_streams_are_lines_of_messages_or_a_text_of_events() -> None:
    for path in ("/v1/matches/{match}:watch", "/v1/attendance", "/v1/play"):
        content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
        assert list(content) == ["application/x-ndjson", "text/event-stream"], (
            "generators take the first that they know"
        )
        assert list(content["application/x-ndjson"]["schema"]) == ["$ref"]
        assert content["text/event-stream"]["schema"]["type"] == "string"


def test_schemas_have_names_that_no_generator_makes_itself() -> None:
    for name, operation in operations():
        if body := operation.get("requestBody"):
            assert list(body["content"]["application/json"]["schema"]) == ["$ref"], name
        own = operation["operationId"][:1].upper() + operation["operationId"][1:]
        made = {
            own + ending
            for ending in (
                "Response",
                "Responses",
                "Error",
                "Errors",
                "Params",
                "Data",
                "JSONBody",
                "JSONRequestBody",
            )
        }
        assert not made & {*SCHEMAS, *DOCUMENT["components"]["responses"]}, name


def test_messages_that_are_always_there_are_required() -> None:
    assert SCHEMAS["GetMatchAnswer"]["required"] == ["match"]
    assert {"createTime", "timeControl", "bots"} <= {*SCHEMAS["Match"]["required"]}
    assert not {"result", "endTime", "dealSet"} & {*SCHEMAS["Match"]["required"]}
    assert SCHEMAS["TimeControl"]["required"][:2] == ["freeMs", "bankMs"]
    assert "required" not in SCHEMAS["TimeControlInput"]


def test_limits_of_requests_are_written_down() -> None:
    register = SCHEMAS["RegisterBotRequest"]["properties"]
    assert re.fullmatch(register["bot"]["pattern"], "a" * 40)
    assert not re.fullmatch(register["bot"]["pattern"], "a" * 41)
    assert not re.fullmatch(register["version"]["pattern"], "1" * 21)
    create = SCHEMAS["CreateMatchRequest"]["properties"]
    assert create["bots"]["minItems"] == 1
    assert SCHEMAS["TimeControlInput"]["properties"]["bankMs"]["maximum"] == 86_400_000
    assert SCHEMAS["AttendRequest"]["properties"]["queues"]["maxItems"] == 32


def test_whole_numbers_of_64_bits_are_texts() -> None:
    assert SCHEMAS["WatchMatchAnswer"]["properties"]["atMs"]["type"] == "string"


def test_a_comment_that_says_required_is_a_required_field() -> None:
    assert SCHEMAS["LadderInput"]["required"] == ["name", "game", "seats"]
    assert "results" in SCHEMAS["Ladder"]["required"]
    assert SCHEMAS["LadderInput"]["properties"]["results"]["readOnly"]


def test_the_page_names_every_operation_and_type_and_needs_no_script_and_no_other_host() -> None:
    page = operations_page().html.decode()
    for route in ROUTES:
        assert f"<code>{route.path}</code>" in page
        assert f'id="{schema_name(route.method.output_type)}"' in page or route.method.name == "GetRecord"
    assert not re.findall(r"<script|<link|<img|<iframe|src=|style=|url\(|@import|href=\"[^#/]", page)


def test_the_policy_of_the_page_allows_its_style() -> None:
    [style] = re.findall(r"<style>(.*?)</style>", operations_page().html.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in operations_page().content_security_policy


@pytest.mark.slow
def test_spectral_finds_nothing(tmp_path: Path) -> None:
    spectral = shutil.which("spectral")
    if spectral is None:
        pytest.skip("spectral is not installed: npm install --global @stoplight/spectral-cli")
    (document := tmp_path / "openapi.json").write_bytes(openapi_json())
    found = subprocess.run(
        [spectral, "lint", "--ruleset", RULES, "--fail-severity", "hint", document],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
