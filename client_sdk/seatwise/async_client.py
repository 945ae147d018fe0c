"""The unary services, for async programs that read, host and administrate.

A call that the server did not answer is repeated, for some seconds. That is safe: what creates
something carries a request id, and the server answers a repeat as it answered the first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple, TypeVar, Unpack
from uuid import uuid4

import grpc
from google.protobuf.message import Message

from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import SeatwiseError, TemporaryError, UnavailableError, from_rpc
from seatwise.link.backoff import Backoff, Retry
from seatwise.link.dialing import explain_failure, fetches_certificate, open_channel
from seatwise.link.endpoint import refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security, SecurityOptions
from seatwise.link.wire import credentials_of
from seatwise.v1 import (
    bot_pb2,
    bot_service_pb2,
    ladder_pb2,
    ladder_service_pb2,
    league_pb2,
    league_service_pb2,
    match_pb2,
    match_service_pb2,
    time_control_pb2,
)

ATTEMPT_S: Final = 10.0
PATIENCE_S: Final = 10.0
"""How long a call is repeated before it fails."""

Response = TypeVar("Response", bound=Message)
Options = Mapping[str, "int | str"]


class Registered(NamedTuple):
    """A bot version, and the token that is told but once."""

    bot: str
    """Format: bots/{bot}/versions/{version}."""
    token: str


class Page(list[match_pb2.Match]):
    """A page of matches."""

    def __init__(self, matches: Iterable[match_pb2.Match], next_page_token: str) -> None:
        super().__init__(matches)
        self.next_page_token = next_page_token
        """Empty on the last page."""


class AsyncClient:
    """Calls a server from async code. Each method raises a `SeatwiseError`.

    `token` may also be in the environment, as SEATWISE_TOKEN. `security` (`insecure`, `tls_pin` and so on) is as in `run`.
    """

    def __init__(
        self,
        address: str = ADDRESS,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        **security: Unpack[SecurityOptions],
    ) -> None:
        given = (token if token is not None else os.environ.get(TOKEN_VARIABLE, "")).strip()
        self._metadata = credentials_of(given)
        self._patience_s = patience_s
        self._security = Security.of(**security)
        self._endpoint = resolve_endpoint(address, insecure=self._security.insecure)
        refuse_clear_text(self._endpoint, given, insecure=self._security.insecure)
        self._channel: grpc.aio.Channel | None = None
        self._superseded: list[grpc.aio.Channel] = []
        """Others may still call by them."""
        self._opening = asyncio.Lock()
        self._is_known = False
        """Whether the server has answered a call: why the next one fails is no question of TLS."""

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection."""
        channels, self._superseded = self._superseded, []
        if self._channel is not None:
            channels.append(self._channel)
            self._channel = None
        for channel in channels:
            await channel.close()

    # Bots

    async def register_bot(
        self, bot: str, version: str = "1", owner: str = "", request_id: str = ""
    ) -> Registered:
        """Registers a bot version. A repeat with the same `request_id` gives it a new token. Admin."""
        request = bot_service_pb2.RegisterBotRequest(
            request_id=request_id or str(uuid4()), bot=bot, version=version, owner=owner
        )
        answer = await self._bots("RegisterBot", request, bot_service_pb2.RegisterBotResponse)
        # Without a token it is the answer to a repeat: the first one was lost with the link.
        token = answer.token or await self.rotate_token(answer.bot.name)
        return Registered(answer.bot.name, token)

    async def rotate_token(self, name: str) -> str:
        """Gives a bot a new token; the old one is worth nothing from now on. Admin."""
        request = bot_service_pb2.RotateTokenRequest(name=name)
        return (await self._bots("RotateToken", request, bot_service_pb2.RotateTokenResponse)).token

    async def revoke_token(self, name: str) -> bot_pb2.Bot:
        """Takes a bot's token away. Admin."""
        request = bot_service_pb2.RevokeTokenRequest(name=name)
        return (await self._bots("RevokeToken", request, bot_service_pb2.RevokeTokenResponse)).bot

    async def get_bot(self, name: str) -> bot_pb2.Bot:
        """One bot version."""
        request = bot_service_pb2.GetBotRequest(name=name)
        return (await self._bots("GetBot", request, bot_service_pb2.GetBotResponse)).bot

    # Matches

    async def create_match(
        self,
        game: str,
        bots: Sequence[str],
        options: Options | None = None,
        time_control: time_control_pb2.TimeControl | None = None,
        deal_set: match_pb2.DealSet | None = None,
        request_id: str = "",
        league: str = "",
    ) -> match_pb2.Match:
        """Creates a match between these bots, by seat; it starts when all are present. Admin.

        A repeat with the same `request_id` gives the same match. `deal_set` makes it one of a set of duplicate deals;
        with `league` the result goes to that league's log.
        """
        request = match_service_pb2.CreateMatchRequest(
            request_id=request_id or str(uuid4()),
            game=f"games/{game.removeprefix('games/')}",
            bots=bots,
            options={name: str(value) for name, value in (options or {}).items()},
            time_control=time_control,
            deal_set=deal_set,
            league=league,
        )
        return (await self._matches("CreateMatch", request, match_service_pb2.CreateMatchResponse)).match

    async def get_match(self, name: str) -> match_pb2.Match:
        """One match."""
        request = match_service_pb2.GetMatchRequest(name=name)
        return (await self._matches("GetMatch", request, match_service_pb2.GetMatchResponse)).match

    async def list_matches(self, page_size: int = 0, page_token: str = "") -> Page:
        """A page of matches, the newest first."""
        request = match_service_pb2.ListMatchesRequest(page_size=page_size, page_token=page_token)
        page = await self._matches("ListMatches", request, match_service_pb2.ListMatchesResponse)
        return Page(page.matches, page.next_page_token)

    async def get_record(self, name: str) -> str:
        """The record of a finished match: one line of JSON."""
        request = match_service_pb2.GetRecordRequest(name=name)
        return (await self._matches("GetRecord", request, match_service_pb2.GetRecordResponse)).record

    async def abort_match(self, name: str) -> match_pb2.Match:
        """Ends a match that counts for nobody. Admin."""
        request = match_service_pb2.AbortMatchRequest(name=name)
        return (await self._matches("AbortMatch", request, match_service_pb2.AbortMatchResponse)).match

    async def get_deal_set(self, name: str) -> match_service_pb2.GetDealSetResponse:
        """A set of duplicate deals: its matches, and whether all of them are over."""
        request = match_service_pb2.GetDealSetRequest(name=name)
        return await self._matches("GetDealSet", request, match_service_pb2.GetDealSetResponse)

    async def close_deal_set(self, name: str) -> bool:
        """Gives up a set of which not all matches will be played; whether it is over by that. Admin."""
        request = match_service_pb2.CloseDealSetRequest(name=name)
        return (await self._matches("CloseDealSet", request, match_service_pb2.CloseDealSetResponse)).over

    async def watch_match(self, name: str) -> AsyncGenerator[match_service_pb2.WatchMatchResponse]:
        """What a spectator may see of a match, from now to its end. A lost link is made again."""
        request, retry = match_service_pb2.WatchMatchRequest(name=name), Retry(f"watching {name}")
        while True:
            try:
                async with aclosing(self._watch(request)) as responses:
                    async for response in responses:
                        retry.is_up()
                        yield response
                return
            except TemporaryError as error:
                await retry.after(error)

    # Leagues

    async def create_league(self, name: str, settings: str) -> league_pb2.League:
        """Creates a league; `settings` is JSON, as in a season bundle. A repeat gives the same league. Admin."""
        request = league_service_pb2.CreateLeagueRequest(
            league=league_pb2.League(name=name, settings=settings)
        )
        return (await self._leagues("CreateLeague", request, league_service_pb2.CreateLeagueResponse)).league

    async def list_league_results(
        self, name: str, page_size: int = 0, page_token: str = ""
    ) -> league_service_pb2.ListLeagueResultsResponse:
        """A page of a league's results, in the order in which they came."""
        request = league_service_pb2.ListLeagueResultsRequest(
            league=name, page_size=page_size, page_token=page_token
        )
        return await self._leagues("ListLeagueResults", request, league_service_pb2.ListLeagueResultsResponse)

    async def list_league_standings(self, name: str) -> league_service_pb2.ListLeagueStandingsResponse:
        """Where everybody stands in a league."""
        request = league_service_pb2.ListLeagueStandingsRequest(league=name)
        return await self._leagues(
            "ListLeagueStandings", request, league_service_pb2.ListLeagueStandingsResponse
        )

    # Ladders

    async def create_ladder(self, ladder: ladder_pb2.Ladder) -> ladder_pb2.Ladder:
        """Creates a ladder; a repeat with the same settings gives the same. Admin."""
        request = ladder_service_pb2.CreateLadderRequest(ladder=ladder)
        return (await self._ladders("CreateLadder", request, ladder_service_pb2.CreateLadderResponse)).ladder

    async def get_ladder(self, name: str) -> ladder_pb2.Ladder:
        """One ladder."""
        request = ladder_service_pb2.GetLadderRequest(name=name)
        return (await self._ladders("GetLadder", request, ladder_service_pb2.GetLadderResponse)).ladder

    async def list_standings(
        self, ladder: str, page_size: int = 0, page_token: str = ""
    ) -> ladder_service_pb2.ListStandingsResponse:
        """A page of where everybody stands on a ladder, the best first."""
        request = ladder_service_pb2.ListStandingsRequest(
            ladder=ladder, page_size=page_size, page_token=page_token
        )
        return await self._ladders("ListStandings", request, ladder_service_pb2.ListStandingsResponse)

    async def list_ladder_results(
        self, ladder: str, page_size: int = 0, page_token: str = "", *, newest_first: bool = False
    ) -> ladder_service_pb2.ListLadderResultsResponse:
        """A page of the results that count for a ladder."""
        request = ladder_service_pb2.ListLadderResultsRequest(
            ladder=ladder, page_size=page_size, page_token=page_token, newest_first=newest_first
        )
        return await self._ladders("ListLadderResults", request, ladder_service_pb2.ListLadderResultsResponse)

    async def reinstate_bot(self, ladder: str, bot: str) -> None:
        """Lets a bot back on a ladder that it was taken off. Admin, or the bot itself."""
        request = ladder_service_pb2.ReinstateBotRequest(ladder=ladder, bot=bot)
        await self._ladders("ReinstateBot", request, ladder_service_pb2.ReinstateBotResponse)

    # Calls

    async def _ladders(self, method: str, request: Message, response: type[Response]) -> Response:
        return await self._call(f"/seatwise.v1.LadderService/{method}", request, response)

    async def _leagues(self, method: str, request: Message, response: type[Response]) -> Response:
        return await self._call(f"/seatwise.v1.LeagueService/{method}", request, response)

    async def _bots(self, method: str, request: Message, response: type[Response]) -> Response:
        return await self._call(f"/seatwise.v1.BotService/{method}", request, response)

    async def _matches(self, method: str, request: Message, response: type[Response]) -> Response:
        return await self._call(f"/seatwise.v1.MatchService/{method}", request, response)

    async def _call(self, path: str, request: Message, response: type[Response]) -> Response:
        backoff = Backoff()
        deadline = asyncio.get_running_loop().time() + self._patience_s
        while True:
            try:
                return await self._call_once(path, request, response)
            except UnavailableError as error:
                wait_s = backoff.next_s(error)
                if asyncio.get_running_loop().time() + wait_s > deadline:
                    raise
                await asyncio.sleep(wait_s)

    async def _call_once(self, path: str, request: Message, response: type[Response]) -> Response:
        channel = await self._open()
        method: Any = channel.unary_unary(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        try:
            answer: Response = await method(request, metadata=self._metadata, timeout=ATTEMPT_S)
        except grpc.aio.AioRpcError as error:
            raise await self._explain(from_rpc(error), channel) from error
        self._is_known = True
        return answer

    async def _open(self) -> grpc.aio.Channel:
        async with self._opening:
            if self._channel is None:
                self._channel = await open_channel(self._endpoint, self._security)
            return self._channel

    async def _explain(self, error: SeatwiseError, channel: grpc.aio.Channel) -> SeatwiseError:
        """Why a call failed. Where a certificate was fetched, the next call fetches it again: it may be a new one."""
        if error.reason or not isinstance(error, UnavailableError):
            return error
        if self._channel is channel and fetches_certificate(self._endpoint, self._security):
            self._superseded.append(channel)
            self._channel = None
        if self._is_known:
            return error
        return await asyncio.to_thread(explain_failure, self._endpoint, self._security, error)

    async def _watch(
        self, request: match_service_pb2.WatchMatchRequest
    ) -> AsyncGenerator[match_service_pb2.WatchMatchResponse]:
        channel = await self._open()
        method: Any = channel.unary_stream(
            "/seatwise.v1.MatchService/WatchMatch",
            request_serializer=match_service_pb2.WatchMatchRequest.SerializeToString,
            response_deserializer=match_service_pb2.WatchMatchResponse.FromString,
        )
        call = method(request, metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise await self._explain(from_rpc(error), channel) from error
        finally:
            call.cancel()
