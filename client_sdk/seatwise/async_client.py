"""A client for async programs that read, host and manage matches, ladders and leagues.

The client repeats a call that the server did not answer, for some seconds. This is safe: every call that creates
something carries a request id, and the server gives a repeat the first answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Unpack
from uuid import uuid4

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import (
    SeatwiseError,
    ServerFailedError,
    TemporaryError,
    UnavailableError,
    UsageError,
    from_rpc,
)
from seatwise.link.backoff import Backoff, Retry
from seatwise.link.dialing import explain_failure, fetches_certificate, open_channel
from seatwise.link.endpoint import refuse_clear_text, resolve_endpoint
from seatwise.link.security import Security, SecurityOptions
from seatwise.link.wire import NO_MESSAGE, NOT_A_MESSAGE, credentials_of, reader_of
from seatwise.v1 import (
    bot_pb2,
    bot_service_pb2,
    league_pb2,
    league_service_pb2,
    match_pb2,
    match_service_pb2,
    time_control_pb2,
)
from seatwise.v1.client_methods import AsyncMethods, Response

ATTEMPT_S: Final = 10.0
CALL_PATIENCE_S: Final = 10.0
"""The default time for which a call is repeated before it fails, in seconds."""

BOT_KINDS: Final = ("rules", "search", "learned", "language-model")
"""How a bot may find its moves, as `AsyncClient.set_bot_kind` takes it."""

Options = Mapping[str, "int | str"]


class Registered(NamedTuple):
    """A registered bot version, and its token. The server shows the token only once."""

    bot: str
    """The name of the bot. Format: bots/{bot}/versions/{version}."""

    token: str
    """Its token."""


class MatchList(list[match_pb2.Match]):
    """A page of matches: a list, with `next_page_token` for the next page."""

    def __init__(self, matches: Iterable[match_pb2.Match], next_page_token: str) -> None:
        super().__init__(matches)
        self.next_page_token = next_page_token
        """The `page_token` of the next page; empty on the last page."""


def _enum_name(enum: Any, prefix: str, name: str, fault: str) -> str:
    """Return the name of a value in the protos, for the short name that users write; an empty one is unspecified."""
    full_name = f"{prefix}_{name.replace('-', '_').upper() or 'UNSPECIFIED'}"
    if full_name not in enum.DESCRIPTOR.values_by_name:
        raise UsageError(f"{name!r} {fault}")
    return full_name


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    converted = Timestamp()
    converted.FromDatetime(time.astimezone(UTC))
    return converted


Page = MatchList
"""The name by which earlier versions exported it."""


class AsyncClient(AsyncMethods):
    """Calls a server from async code. Use it in an `async with` statement, or close it.

    Methods that only read need no token. The others name the scope that the token needs; the admin token has every scope.

    Args:
        address: The address of the server, as in `run`.
        token: The token of a bot, a person or the admin. By default it is read from the environment variable SEATWISE_TOKEN.
        patience_s: How long a call is repeated before it fails, in seconds.
        **security: Options of the encryption, as in `run`.

    Raises:
        EncryptionError: The token would travel in clear to another machine.
        UsageError: The address or an option makes no sense.

    Every method may also raise these errors:

    - `BadTokenError`: the token is missing, unknown or revoked.
    - `NotAllowedError`: the token does not allow this call.
    - `BadRequestError`: an argument makes no sense.
    - `UnavailableError`: the server did not answer within `patience_s`.
    - `EncryptionError`: the server's certificate is not trusted, or only one side speaks TLS.

    Example:
        async with AsyncClient("https://host:7433", token="...") as client:
            match = await client.create_match("ugo", ["bots/a/versions/1", "bots/b/versions/1"], {"rounds": 1})
            async for response in client.watch_match(match.name):
                ...
            print(await client.get_record(match.name))
    """

    def __init__(
        self,
        address: str = ADDRESS,
        token: str | None = None,
        *,
        patience_s: float = CALL_PATIENCE_S,
        **security: Unpack[SecurityOptions],
    ) -> None:
        given = (token if token is not None else os.environ.get(TOKEN_VARIABLE, "")).strip()
        self._metadata = credentials_of(given)
        self._patience_s = patience_s
        self._security = Security.resolve_options(**security)
        self._endpoint = resolve_endpoint(address, insecure=self._security.insecure)
        refuse_clear_text(self._endpoint, given, insecure=self._security.insecure)
        self._channel: grpc.aio.Channel | None = None
        self._superseded: list[grpc.aio.Channel] = []
        """Channels that other calls may still use."""
        self._opening = asyncio.Lock()
        self._is_known = False
        """Whether the server has answered a call. If so, a later failure has nothing to do with TLS."""

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        channels, self._superseded = [*self._superseded, self._channel], []
        self._channel = None
        for channel in filter(None, channels):
            await channel.close()

    # Bots

    async def register_bot(
        self, bot: str, version: str = "1", owner: str = "", request_id: str = ""
    ) -> Registered:
        """Register a bot version. Needs the scope register.

        Args:
            bot: The name: lower-case letters, digits and dashes, at most 40, starting with a letter.
            version: Letters, digits and dashes, at most 20.
            owner: The person or team responsible for it, at most 80 characters.
            request_id: An id of at most 64 characters; by default a new one. A repeat with the same id registers nothing
                new, but gives the bot a new token.

        Returns:
            The full name of the bot, and its token.

        Raises:
            AlreadyExistsError: This version is registered.
        """
        request = bot_service_pb2.RegisterBotRequest(
            request_id=request_id or str(uuid4()), bot=bot, version=version, owner=owner
        )
        path, response = "/seatwise.v1.BotService/RegisterBot", bot_service_pb2.RegisterBotResponse
        answer = await self._call_method(path, request, response)
        # Without a token it is the answer to a repeat: the first one was lost with the link.
        token = answer.token or await self.rotate_token(answer.bot.name)
        return Registered(answer.bot.name, token)

    async def set_bot_kind(self, name: str, kind: str) -> bot_pb2.Bot:
        """Say how a bot finds its moves. It needs the bot's own token, that of its owner, or an operator's.

        Args:
            name: The bot, as in `"bots/alice/versions/1"`.
            kind: The kind: `"rules"`, `"search"`, `"learned"` or `"language-model"`. Empty to say nothing any more.

        Returns:
            The bot.

        Raises:
            UsageError: There is no such kind.
            NotFoundError: There is no such bot.
        """
        fault = f"is no kind of bot; there are {', '.join(BOT_KINDS)}"
        kind = _enum_name(bot_pb2.BotKind, "BOT_KIND", kind, fault)
        request = bot_service_pb2.SetBotKindRequest(name=name, kind=kind)
        path, response = "/seatwise.v1.BotService/SetBotKind", bot_service_pb2.SetBotKindResponse
        return (await self._call_method(path, request, response)).bot

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
        """Create a match between named bots. It starts when all of them are present. Needs the scope operate.

        Args:
            game: The game, as in "ugo".
            bots: The bots by seat, as in `"bots/alice/versions/1"`.
            options: Options of the game, as in `{"rounds": 1}`. An option that is not named has its default.
            time_control: The time limits, in milliseconds. A limit that is not set has its default.
            deal_set: Makes the match part of a set of duplicate deals.
            request_id: An id of at most 64 characters; by default a new one. A repeat with the same id gives the same
                match.
            league: The league for which the result counts, as in `"leagues/autumn"`.

        Returns:
            The match.

        Raises:
            NotFoundError: There is no such game, bot or league.
            AlreadyExistsError: The set has a match of this number.
            WrongStateError: The set is over or closed, so that no more matches can join it.
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
        path, response = "/seatwise.v1.MatchService/CreateMatch", match_service_pb2.CreateMatchResponse
        return (await self._call_method(path, request, response)).match

    async def list_matches(
        self,
        page_size: int = 0,
        page_token: str = "",
        *,
        bot: str = "",
        game: str = "",
        competition: str = "",
        state: str = "",
        created_from: datetime | None = None,
        created_before: datetime | None = None,
    ) -> MatchList:
        """List matches, the newest first. A match has to fit every filter that is given.

        Args:
            page_size: The most matches on the page; 0 means 50, and more than 1000 means 1000. With filters a page may be
                short although it is not the last.
            page_token: The `next_page_token` of the page before, with the same filters; empty for the first page.
            bot: Only matches in which this bot has a seat, as in `"bots/alice/versions/1"`.
            game: Only matches of this game, as in "ugo".
            competition: Only matches that count for it, as in `"ladders/main"` or `"leagues/autumn"`.
            state: Only matches in this state: "waiting", "seating", "running", "finished" or "voided".
            created_from: Only matches that were created then or later. A time without a time zone is local.
            created_before: Only matches that were created before then.

        Returns:
            The page.

        Raises:
            BadRequestError: A filter makes no sense, or the page token came with other filters.
        """
        request = match_service_pb2.ListMatchesRequest(
            page_size=page_size,
            page_token=page_token,
            bot=bot,
            game=f"games/{game.removeprefix('games/')}" if game else "",
            competition=competition,
            state=_enum_name(match_pb2.Match.State, "STATE", state, "is not a state of a match"),
            created_from=_timestamp(created_from),
            created_before=_timestamp(created_before),
        )
        path, response = "/seatwise.v1.MatchService/ListMatches", match_service_pb2.ListMatchesResponse
        page = await self._call_method(path, request, response)
        return MatchList(page.matches, page.next_page_token)

    async def watch_match(self, name: str) -> AsyncGenerator[match_service_pb2.WatchMatchResponse]:
        """Watch a match as a spectator, from now to its end. A lost connection is made again.

        Args:
            name: The match, as in `"matches/1a2b"`.

        Yields:
            What a spectator may see, soon after each change.

        Raises:
            NotFoundError: There is no such match.
            WrongStateError: The match shares its deals with matches that are not over.
        """
        request, retry = match_service_pb2.WatchMatchRequest(name=name), Retry(f"watching {name}")
        while True:
            try:
                async with aclosing(self._watch_once(request)) as responses:
                    async for response in responses:
                        retry.note_success()
                        yield response
                return
            except TemporaryError as error:
                await retry.wait_after(error)

    # Leagues

    async def create_league(self, name: str, settings: str) -> league_pb2.League:
        """Create a league. A repeat with the same settings gives the same league. Needs the scope operate.

        Args:
            name: The league, as in `"leagues/autumn"`.
            settings: JSON, as settings.json in a season bundle.

        Returns:
            The league.

        Raises:
            AlreadyExistsError: There is a league of this name with other settings.
        """
        league = league_pb2.League(name=name, settings=settings)
        request = league_service_pb2.CreateLeagueRequest(league=league)
        path, response = "/seatwise.v1.LeagueService/CreateLeague", league_service_pb2.CreateLeagueResponse
        return (await self._call_method(path, request, response)).league

    # Calls

    async def _call_method(self, path: str, request: Message, response: type[Response]) -> Response:
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
        channel = await self._open_channel()
        method: Any = channel.unary_unary(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=reader_of(response),
        )
        try:
            answer: Response = await method(request, metadata=self._metadata, timeout=ATTEMPT_S)
        except grpc.aio.AioRpcError as error:
            raise await self._explain_failure(from_rpc(error), channel) from error
        self._is_known = True
        if answer is NOT_A_MESSAGE:
            raise ServerFailedError(NO_MESSAGE)
        return answer

    async def _open_channel(self) -> grpc.aio.Channel:
        async with self._opening:
            if self._channel is None:
                self._channel = await open_channel(self._endpoint, self._security)
            return self._channel

    async def _explain_failure(self, error: SeatwiseError, channel: grpc.aio.Channel) -> SeatwiseError:
        """Return why a call failed. If the certificate was fetched, the next call fetches it again: it may be a new one."""
        if error.reason or not isinstance(error, UnavailableError):
            return error
        if self._channel is channel and fetches_certificate(self._endpoint, self._security):
            self._superseded.append(channel)
            self._channel = None
        if self._is_known:
            return error
        return await asyncio.to_thread(explain_failure, self._endpoint, self._security, error)

    async def _watch_once(
        self, request: match_service_pb2.WatchMatchRequest
    ) -> AsyncGenerator[match_service_pb2.WatchMatchResponse]:
        channel = await self._open_channel()
        method: Any = channel.unary_stream(
            "/seatwise.v1.MatchService/WatchMatch",
            request_serializer=match_service_pb2.WatchMatchRequest.SerializeToString,
            response_deserializer=reader_of(match_service_pb2.WatchMatchResponse),
        )
        call = method(request, metadata=self._metadata)
        try:
            async for response in call:
                if response is NOT_A_MESSAGE:
                    raise ServerFailedError(NO_MESSAGE)
                yield response
        except grpc.aio.AioRpcError as error:
            raise await self._explain_failure(from_rpc(error), channel) from error
        finally:
            call.cancel()
