"""Which URL is which method: the one table, in the syntax of google.api.http.

The protos have no annotations, so that a bot needs no more than grpcio and protobuf. A method that is not in the table has
no URL; tests/contract/test_rest_routes.py compares the table with the protos.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

# The descriptors of the services must be known before they are looked up.
from seatwise.v1 import (  # noqa: F401
    access_service_pb2,
    admin_service_pb2,
    bot_service_pb2,
    game_service_pb2,
    ladder_service_pb2,
    league_service_pb2,
    match_service_pb2,
    owner_service_pb2,
)

NO_BODY = ""
WHOLE_BODY = "*"
"""The body is the request, except the field that the path holds."""

# Method, verb, template, body. `{name=matches/*}` puts this part of the path into the field `name` of the request. A body of
# `ladder` goes into the field `ladder`. Without a body, fields that the path does not hold are query parameters.
_TABLE = """
GameService.ListGames              GET    /v1/games
GameService.GetGame                GET    /v1/{name=games/*}

BotService.RegisterBot             POST   /v1/bots                                    *
BotService.ListBots                GET    /v1/bots
BotService.GetBot                  GET    /v1/{name=bots/*/versions/*}
BotService.ListOpponents           GET    /v1/{name=bots/*/versions/*}/opponents
BotService.DeleteBot               DELETE /v1/{name=bots/*/versions/*}
BotService.RotateToken             POST   /v1/{name=bots/*/versions/*}:rotateToken    *
BotService.RevokeToken             POST   /v1/{name=bots/*/versions/*}:revokeToken    *
BotService.SetBotKind              POST   /v1/{name=bots/*/versions/*}:setKind        *

MatchService.CreateMatch           POST   /v1/matches                                 *
MatchService.ListMatches           GET    /v1/matches
MatchService.GetMatch              GET    /v1/{name=matches/*}
MatchService.GetRecord             GET    /v1/{name=matches/*}/record
MatchService.WatchMatch            GET    /v1/{name=matches/*}:watch
MatchService.AbortMatch            POST   /v1/{name=matches/*}:abort                  *
MatchService.GetDealSet            GET    /v1/{name=sets/*}
MatchService.CloseDealSet          POST   /v1/{name=sets/*}:close                     *

LadderService.CreateLadder         POST   /v1/ladders                                 ladder
LadderService.ListLadders          GET    /v1/ladders
LadderService.GetLadder            GET    /v1/{name=ladders/*}
LadderService.ListStandings        GET    /v1/{ladder=ladders/*}/standings
LadderService.ListStandingsHistory GET    /v1/{ladder=ladders/*}/standingsHistory
LadderService.ListLadderResults    GET    /v1/{ladder=ladders/*}/results
LadderService.ReinstateBot         POST   /v1/{ladder=ladders/*}:reinstateBot         *

LeagueService.CreateLeague         POST   /v1/leagues                                 league
LeagueService.ListLeagues          GET    /v1/leagues
LeagueService.GetLeague            GET    /v1/{name=leagues/*}
LeagueService.ListLeagueStandings  GET    /v1/{league=leagues/*}/standings
LeagueService.ListLeagueResults    GET    /v1/{league=leagues/*}/results

AdminService.ListReferees          GET    /v1/referees
AdminService.DrainReferee          POST   /v1/{name=referees/*}:drain                 *
AdminService.ListLiveMatches       GET    /v1/matches:live
AdminService.ListLeases            GET    /v1/leases
AdminService.VoidMatch             POST   /v1/{name=matches/*}:void                   *
AdminService.ForgiveNoShows        POST   /v1/{bot=bots/*/versions/*}:forgiveNoShows  *
AdminService.CheckMatches          POST   /v1/matches:check                           *

AccessService.CreateAccessToken    POST   /v1/tokens                                  *
AccessService.ListAccessTokens     GET    /v1/tokens
AccessService.RotateAccessToken    POST   /v1/{name=tokens/*}:rotate                  *
AccessService.RevokeAccessToken    POST   /v1/{name=tokens/*}:revoke                  *
AccessService.ListAuditEntries     GET    /v1/auditEntries
AccessService.EraseOwner           POST   /v1/bots:eraseOwner                         *

OwnerService.CreateInvite          POST   /v1/invites                                 *
OwnerService.ListInvites           GET    /v1/invites
OwnerService.RevokeInvite          POST   /v1/{name=invites/*}:revoke                 *
OwnerService.CreateOwner           POST   /v1/owners                                  *
OwnerService.GetOwner              GET    /v1/{name=owners/*}
OwnerService.SetOwnerQuotas        POST   /v1/{name=owners/*}:setQuotas               *
"""
_VARIABLE = re.compile(r"\{(\w+)=([^}]+)\}")
_IRREGULAR_SINGULARS = {"matches": "match"}


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """One line of the table."""

    method: MethodDescriptor
    verb: str
    """GET, POST or DELETE."""
    template: str
    """As google.api.http has it: /v1/{name=matches/*}:abort."""
    body: str
    """`WHOLE_BODY`, `NO_BODY`, or the field that the body becomes."""
    path_field: str
    """The field of the request that the path holds; empty if there is none."""
    name_pattern: str
    """The form of the value of `path_field`: bots/*/versions/*."""
    path: str
    """As OpenAPI has it: /v1/bots/{bot}/versions/{version}."""

    @property
    def operation(self) -> str:
        """The method's name as gRPC has it: /seatwise.v1.MatchService/GetMatch."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    @property
    def request(self) -> Descriptor:
        """The type of the request."""
        return self.method.input_type

    @property
    def body_type(self) -> Descriptor | None:
        """The type of the body; None without one."""
        if self.body in (NO_BODY, WHOLE_BODY):
            return self.request if self.body else None
        return self.request.fields_by_name[self.body].message_type

    @property
    def path_parameters(self) -> list[str]:
        """The variable parts of `path`, in order: ["bot", "version"]."""
        return re.findall(r"\{(\w+)\}", self.path)

    @property
    def query_fields(self) -> list[FieldDescriptor]:
        """The fields of the request that are query parameters."""
        if self.body == WHOLE_BODY:
            return []
        return [field for field in self.request.fields if field.name not in (self.path_field, self.body)]

    def resource_name(self, values: list[str]) -> str:
        """Puts the values of `path_parameters` into `name_pattern`: ["my-bot", "1"] gives bots/my-bot/versions/1."""
        remaining = iter(values)
        return "/".join(next(remaining) if part == "*" else part for part in self.name_pattern.split("/"))


def _parse_line(line: str) -> HttpRoute:
    called, verb, template, *body = line.split()
    variable = _VARIABLE.search(template)
    field, pattern = variable.groups() if variable else ("", "")
    path = template.replace(variable[0], _with_parameters(pattern)) if variable else template
    method = descriptor_pool.Default().FindMethodByName(f"seatwise.v1.{called}")
    return HttpRoute(method, verb, template, body[0] if body else NO_BODY, field, pattern, path)


def _with_parameters(pattern: str) -> str:
    """Names each variable part after its collection: matches/* becomes matches/{match}."""
    parts = pattern.split("/")
    return "/".join(
        f"{{{_singular_of(parts[place - 1])}}}" if part == "*" else part for place, part in enumerate(parts)
    )


def _singular_of(collection: str) -> str:
    return _IRREGULAR_SINGULARS.get(collection, collection.removesuffix("s"))


HTTP_ROUTES = tuple(_parse_line(line) for line in _TABLE.splitlines() if line)
