"""A client for programs without an event loop that read, host and manage matches, ladders and leagues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Unpack

from seatwise.async_client import PATIENCE_S, AsyncClient, Options, Page, Registered
from seatwise.defaults import ADDRESS
from seatwise.link.security import SecurityOptions
from seatwise.v1 import (
    bot_pb2,
    ladder_pb2,
    ladder_service_pb2,
    league_pb2,
    league_service_pb2,
    match_pb2,
    match_service_pb2,
    time_control_pb2,
)


class Client:
    """Calls a server from code without an event loop. Use it in a `with` statement, or close it.

    The arguments, and the methods with their arguments, results and errors, are those of `AsyncClient`. Each method
    waits for the answer.

    Example:
        with Client("https://host:7433", token="...") as client:
            print(client.get_match("matches/1a2b").state)
    """

    def __init__(
        self,
        address: str = ADDRESS,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        **security: Unpack[SecurityOptions],
    ) -> None:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(_made(address, token, patience_s, security))
        except BaseException:
            self._runner.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._runner.run(self._client.close())
        self._runner.close()

    def register_bot(self, bot: str, version: str = "1", owner: str = "", request_id: str = "") -> Registered:
        """Register a bot version. See `AsyncClient.register_bot`."""
        return self._runner.run(self._client.register_bot(bot, version, owner, request_id))

    def rotate_token(self, name: str) -> str:
        """Give a bot a new token. See `AsyncClient.rotate_token`."""
        return self._runner.run(self._client.rotate_token(name))

    def revoke_token(self, name: str) -> bot_pb2.Bot:
        """Revoke a bot's token. See `AsyncClient.revoke_token`."""
        return self._runner.run(self._client.revoke_token(name))

    def get_bot(self, name: str) -> bot_pb2.Bot:
        """Get a bot version. See `AsyncClient.get_bot`."""
        return self._runner.run(self._client.get_bot(name))

    def create_match(
        self,
        game: str,
        bots: Sequence[str],
        options: Options | None = None,
        time_control: time_control_pb2.TimeControl | None = None,
        deal_set: match_pb2.DealSet | None = None,
        request_id: str = "",
        league: str = "",
    ) -> match_pb2.Match:
        """Create a match between named bots. See `AsyncClient.create_match`."""
        return self._runner.run(
            self._client.create_match(game, bots, options, time_control, deal_set, request_id, league)
        )

    def get_match(self, name: str) -> match_pb2.Match:
        """Get a match. See `AsyncClient.get_match`."""
        return self._runner.run(self._client.get_match(name))

    def list_matches(self, page_size: int = 0, page_token: str = "") -> Page:
        """List matches, the newest first. See `AsyncClient.list_matches`."""
        return self._runner.run(self._client.list_matches(page_size, page_token))

    def get_record(self, name: str) -> str:
        """Get the record of a finished match. See `AsyncClient.get_record`."""
        return self._runner.run(self._client.get_record(name))

    def abort_match(self, name: str) -> match_pb2.Match:
        """End a match so that it does not count. See `AsyncClient.abort_match`."""
        return self._runner.run(self._client.abort_match(name))

    def get_deal_set(self, name: str) -> match_service_pb2.GetDealSetResponse:
        """Get a set of duplicate deals. See `AsyncClient.get_deal_set`."""
        return self._runner.run(self._client.get_deal_set(name))

    def close_deal_set(self, name: str) -> bool:
        """Close a set of duplicate deals of which not all matches will be played. See `AsyncClient.close_deal_set`."""
        return self._runner.run(self._client.close_deal_set(name))

    def watch_match(self, name: str) -> Iterator[match_service_pb2.WatchMatchResponse]:
        """Watch a match as a spectator, from now to its end. See `AsyncClient.watch_match`."""
        responses = self._client.watch_match(name)
        try:
            while (response := self._runner.run(_next(responses))) is not None:
                yield response
        finally:
            self._runner.run(responses.aclose())

    def create_ladder(self, ladder: ladder_pb2.Ladder) -> ladder_pb2.Ladder:
        """Create a ladder. See `AsyncClient.create_ladder`."""
        return self._runner.run(self._client.create_ladder(ladder))

    def get_ladder(self, name: str) -> ladder_pb2.Ladder:
        """Get a ladder. See `AsyncClient.get_ladder`."""
        return self._runner.run(self._client.get_ladder(name))

    def list_standings(
        self, ladder: str, page_size: int = 0, page_token: str = ""
    ) -> ladder_service_pb2.ListStandingsResponse:
        """List the standings of a ladder, the best bot first. See `AsyncClient.list_standings`."""
        return self._runner.run(self._client.list_standings(ladder, page_size, page_token))

    def list_ladder_results(
        self, ladder: str, page_size: int = 0, page_token: str = "", *, newest_first: bool = False
    ) -> ladder_service_pb2.ListLadderResultsResponse:
        """List the results that count for a ladder. See `AsyncClient.list_ladder_results`."""
        return self._runner.run(
            self._client.list_ladder_results(ladder, page_size, page_token, newest_first=newest_first)
        )

    def create_league(self, name: str, settings: str) -> league_pb2.League:
        """Create a league. See `AsyncClient.create_league`."""
        return self._runner.run(self._client.create_league(name, settings))

    def list_league_results(
        self, name: str, page_size: int = 0, page_token: str = ""
    ) -> league_service_pb2.ListLeagueResultsResponse:
        """List the results of a league, the oldest first. See `AsyncClient.list_league_results`."""
        return self._runner.run(self._client.list_league_results(name, page_size, page_token))

    def list_league_standings(self, name: str) -> league_service_pb2.ListLeagueStandingsResponse:
        """List the standings of a league, the best entrant first. See `AsyncClient.list_league_standings`."""
        return self._runner.run(self._client.list_league_standings(name))

    def reinstate_bot(self, ladder: str, bot: str) -> None:
        """Let a bot back on a ladder that it was taken off. See `AsyncClient.reinstate_bot`."""
        self._runner.run(self._client.reinstate_bot(ladder, bot))


async def _made(address: str, token: str | None, patience_s: float, security: SecurityOptions) -> AsyncClient:
    """Make the client in the loop: a channel belongs to the loop in which it is made."""
    return AsyncClient(address, token, patience_s=patience_s, **security)


async def _next(
    responses: AsyncGenerator[match_service_pb2.WatchMatchResponse],
) -> match_service_pb2.WatchMatchResponse | None:
    return await anext(responses, None)


__all__ = ["AsyncClient", "Client", "Page", "Registered"]
