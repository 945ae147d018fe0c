"""The operator, and bots around a table."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seasons.one_season import league_of

from harness.items import item, legal_move, reason_name, submission
from harness.wire import SOON_S, Stream, Wire
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import (
    bot_service_pb2,
    ladder_pb2,
    ladder_service_pb2,
    ladder_service_pb2_grpc,
    league_pb2,
    league_service_pb2,
    league_service_pb2_grpc,
    match_pb2,
    match_service_pb2,
    play_service_pb2,
    time_control_pb2,
)
from seatwise_referee.verify import verify_line
from seatwise_server.league.settings import Entrant

QUICK = {"card": 2000, "arrange": 2000}
"""Free time that no test client needs, and no test waits for."""

_numbers = itertools.count(1)


class Admin(Wire):
    """The operator."""

    async def register(self, name: str = "") -> Wire:
        """A new bot, and its own connection."""
        request = bot_service_pb2.RegisterBotRequest(
            request_id=f"register-{next(_numbers)}", bot=name or f"bot{next(_numbers)}", owner="tests"
        )
        answer = await self.bots.RegisterBot(request, metadata=self.metadata, timeout=SOON_S)
        return Wire(self.address, answer.token, answer.bot.name)

    async def create_ladder(self, name: str) -> None:
        """A ladder for two of one round of UGO!, with the limits that ladders have if nothing is said. All bots may meet."""
        ladder = ladder_pb2.Ladder(
            name=name, game="games/ugo", seats=2, options={"rounds": "1"}, owners_together=True
        )
        request = ladder_service_pb2.CreateLadderRequest(ladder=ladder)
        stub = ladder_service_pb2_grpc.LadderServiceStub(self.channel)
        await stub.CreateLadder(request, metadata=self.metadata, timeout=SOON_S)

    async def create_league(self, name: str, bots: Sequence[str]) -> None:
        """A league for two of UGO! between these bots."""
        entrants = tuple(Entrant(bot.split("/")[1], bot) for bot in bots)
        settings = json.dumps(league_of(entrants=entrants).to_published_json())
        request = league_service_pb2.CreateLeagueRequest(
            league=league_pb2.League(name=name, settings=settings)
        )
        stub = league_service_pb2_grpc.LeagueServiceStub(self.channel)
        await stub.CreateLeague(request, metadata=self.metadata, timeout=SOON_S)

    async def revoke(self, bot: str) -> None:
        """Takes the bot's token away."""
        request = bot_service_pb2.RevokeTokenRequest(name=bot)
        await self.bots.RevokeToken(request, metadata=self.metadata, timeout=SOON_S)

    async def create(
        self,
        bots: Sequence[str],
        *,
        game: str = "ugo",
        rounds: int = 1,
        request_id: str = "",
        deal_set: match_pb2.DealSet | None = None,
        league: str = "",
        **limits: Any,
    ) -> match_pb2.Match:
        """A match, of UGO! if not said otherwise, or of Ubongo with cards that nearly always fit, between these bots; `limits` as in TimeControl, QUICK if none are named."""
        request = match_service_pb2.CreateMatchRequest(
            request_id=request_id,
            game=f"games/{game}",
            bots=bots,
            options={"rounds": str(rounds), **({"deck": "easy"} if game == "ubongo" else {})},
            time_control=time_control_pb2.TimeControl(**{"free_ms": QUICK, **limits}),
            deal_set=deal_set,
            league=league,
        )
        answer = await self.matches.CreateMatch(request, metadata=self.metadata, timeout=SOON_S)
        match: match_pb2.Match = answer.match
        return match

    async def match(self, name: str) -> match_pb2.Match:
        """The match as it stands."""
        request = match_service_pb2.GetMatchRequest(name=name)
        answer = await self.matches.GetMatch(request, metadata=self.metadata, timeout=SOON_S)
        match: match_pb2.Match = answer.match
        return match

    async def over(self, name: str, within_s: float = SOON_S) -> match_pb2.Match:
        """The match when its result is there."""
        async with asyncio.timeout(within_s):
            async for seen in self.watch(name):
                if seen.HasField("match") and seen.match.HasField("end_time"):
                    return seen.match
        return await self.match(name)

    async def record(self, name: str) -> bytes:
        """The record of a finished match, which verifies."""
        request = match_service_pb2.GetRecordRequest(name=name)
        answer = await self.matches.GetRecord(request, metadata=self.metadata, timeout=SOON_S)
        line: bytes = answer.record.encode()
        verdict = verify_line(line)
        assert verdict.fault is None, verdict.fault
        return line

    async def abort(self, name: str) -> match_pb2.Match:
        """Asks for the match's end."""
        request = match_service_pb2.AbortMatchRequest(name=name)
        answer = await self.matches.AbortMatch(request, metadata=self.metadata, timeout=SOON_S)
        match: match_pb2.Match = answer.match
        return match


class Chair:
    """One seat of one match, with the bot that owns it."""

    def __init__(self, wire: Wire, match: str, seat: int) -> None:
        self.wire = wire
        self.match = match
        self.seat = seat
        self.stream: Stream | None = None
        self.chance = random.Random(f"{match}/{seat}")
        self.last: play_service_pb2.Update | None = None
        """The last update seen."""
        self.accepted: dict[str, int] = {}
        """Every move of this seat that was acknowledged: request id to prompt."""
        self.rejections: list[play_service_pb2.MoveRejected] = []
        self._asked_for: dict[str, int] = {}
        self._answered: tuple[int, int] = (0, 0)

    async def sit(self, stream: Stream | None = None, **sit: Any) -> None:
        """Sits down through a stream, a new one if none is named."""
        self.stream = stream or self.wire.play()
        self._answered = (0, 0)
        await self.say(sit=play_service_pb2.Sit(**{"nonce": bytes([self.seat]) * 32, **sit}))

    async def say(self, **action: Any) -> None:
        """One item about this seat."""
        assert self.stream is not None
        await self.stream.send(item(self.match, self.seat, **action))

    async def submit(
        self, move: ugo_pb2.Move | None, prompt: int | None = None, request_id: str | None = None
    ) -> str:
        """Answers the prompt of the last update, or another; the request id."""
        asked = submission(self._prompt if prompt is None else prompt, move, request_id)
        self._asked_for[asked.request_id] = asked.prompt
        await self.say(submit_move=asked)
        return asked.request_id

    @property
    def _prompt(self) -> int:
        return self.last.prompt if self.last else 0

    async def move(self) -> str:
        """A random legal answer to the last update; the request id."""
        assert self.last is not None
        assert self.last.to_act
        return await self.submit(legal_move(self.last, self.chance))

    async def receive(self, within_s: float = SOON_S) -> play_service_pb2.PlayResponseItem:
        """The next item, noted."""
        assert self.stream is not None
        found: play_service_pb2.PlayResponseItem = await self.stream.receive(self.match, self.seat, within_s)
        match found.WhichOneof("event"):
            case "update":
                self.last = found.update
            case "move_accepted":
                request_id = found.move_accepted.request_id
                self.accepted[request_id] = self._asked_for[request_id]
            case "move_rejected":
                self.rejections.append(found.move_rejected)
        return found

    async def expect(self, kind: str, within_s: float = SOON_S) -> Any:
        """The next item of this kind, e.g. "update" or "match_ended"; others before it are noted."""
        async with asyncio.timeout(within_s):
            while True:
                found = await self.receive(within_s)
                if found.WhichOneof("event") == kind:
                    return getattr(found, kind)

    async def asked(self, pace: str = "", within_s: float = SOON_S) -> play_service_pb2.Update:
        """The update that asks this seat, for a move of this pace; other questions are answered."""
        async with asyncio.timeout(within_s):
            while True:
                update = await self.expect("update", within_s)
                if update.to_act and update.pace == (pace or update.pace):
                    found: play_service_pb2.Update = update
                    return found
                if update.to_act:
                    await self.move()

    async def rejected(self, within_s: float = SOON_S) -> str:
        """Why the next rejected item does not stand."""
        found = await self.expect("move_rejected", within_s)
        return reason_name(found)

    async def play_out(self, within_s: float = 30.0) -> play_service_pb2.MatchEnded:
        """Random legal moves to the end of the match, from where it stands."""
        if self.last and self.last.to_act:
            await self._answer_once(self.last, 0)
        async with asyncio.timeout(within_s):
            while True:
                found = await self.receive(within_s)
                if found.HasField("match_ended"):
                    return found.match_ended
                if found.HasField("update") and found.update.to_act:
                    await self._answer_once(found.update, found.epoch)

    async def _answer_once(self, update: play_service_pb2.Update, epoch: int) -> None:
        if self._answered[1] != update.prompt or (epoch and self._answered[0] not in (0, epoch)):
            self._answered = (epoch, update.prompt)
            await self.move()


@dataclass(slots=True)
class Table:
    """A match and the chairs around it."""

    match: match_pb2.Match
    chairs: list[Chair]

    @property
    def name(self) -> str:
        """Format: matches/{match}."""
        return self.match.name

    async def sit(self) -> None:
        """All sit down, each through a stream of its own."""
        for chair in self.chairs:
            await chair.sit()

    async def asked(self, pace: str = "card") -> tuple[Chair, list[Chair]]:
        """The chair that is asked first, and the others. Only at the start of a match."""
        waiting = {asyncio.create_task(chair.asked(pace)): chair for chair in self.chairs}
        done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=SOON_S)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        [asked] = [waiting[task] for task in done]
        return asked, [chair for chair in self.chairs if chair is not asked]

    async def play_out(self, within_s: float = 30.0) -> list[play_service_pb2.MatchEnded]:
        """All play random legal moves to the end; what each was told at the end."""
        return await asyncio.gather(*[chair.play_out(within_s) for chair in self.chairs])
