"""Those who play: the shipped SDK link with bots that draw lots, and the office that has matches made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from seatwise.bot import Bot
from seatwise.errors import RefusedError, SeatwiseError
from seatwise.link.bot_session import BotSession, RunPlan
from seatwise.offer import Offer
from seatwise.result import Result
from seatwise.ubongo import Layout, OfferEnd, fitting_places
from seatwise.ubongo import View as Hand
from seatwise.ugo import Card, View
from seatwise.v1 import match_pb2, match_service_pb2, time_control_pb2
from seatwise.v1.lobby_service_pb2 import AttendRequest
from seatwise_referee.mixed_move import MixedMove
from simulation.chance import Chance
from simulation.clock import Loop
from simulation.plain_http import HttpWire
from simulation.rpc import Exchange, Wire, unary
from simulation.servers import ADMIN_TOKEN
from simulation.web_sockets import SocketWire

LOBBY = "lobby:7433"
PACKAGE = "/seatwise.v1."
TRIES = 3
MIXED = 0.3
"""The share of cards that are left to the referee's draw."""
BY_WEBSOCKET = 0.33
"""The share of bots that come by WebSocket."""
BY_HTTP = 0.2
"""The share of bots that come by plain HTTP, where the world has a process that serves it."""


class Player(Bot):
    """Draws lots, soon. All of it are coroutines, so the SDK needs no thread."""

    _lots: Chance
    _think_s: float
    _doze = 0.0
    """How often it is slow, maybe too slow."""
    _doze_s = 0.0

    async def setup(self, offer: Offer) -> None:
        """It has nothing to load."""

    async def choose(self, view: View) -> Card | MixedMove:
        """Any card; now and then the referee draws it."""
        await self._think()
        if self._lots.happens(MIXED):
            return MixedMove([(card, 1 + card.value) for card in view.legal_cards])
        return self._lots.choice(view.legal_cards)

    async def arrange(self, view: View) -> list[Card]:
        """Any order."""
        await self._think()
        return self._lots.sample(view.won_cards, len(view.won_cards))

    async def build(self, view: Hand):  # type: ignore[no-untyped-def, override]
        """A few cards wherever they fit, and no more."""
        symbols, layout = dict(view.hand), Layout()
        for side in self._lots.sample(view.hand, TRIES):
            await self._think()
            if places := list(fitting_places(layout, side.card, symbols)):
                layout = (*layout, self._lots.choice(places))
                yield layout
        yield OfferEnd(on=True)

    async def ended(self, result: Result) -> None:
        """It does not care."""

    async def _think(self) -> None:
        if self._think_s:
            await asyncio.sleep(self._lots.uniform(0, self._think_s))
        if self._lots.happens(self._doze):
            await asyncio.sleep(self._lots.uniform(0, self._doze_s))


class Seated:
    """One incarnation of the process of one bot."""

    def __init__(
        self,
        loop: Loop,
        exchange: Exchange,
        token: str,
        chance: Chance,
        *,
        game: str,
        queues: tuple[str, ...],
        habits: dict[str, float],
        most_at_once: int,
        on_result: Callable[[Result], None],
        on_failed: Callable[[str], None],
        has_http: bool,
    ) -> None:
        self.loop = loop
        self.wire = _transport(chance.of("transport").random(), has_http)(exchange, loop, LOBBY, token)
        self.session: BotSession
        self.has_left = False
        self._on_failed = on_failed

        player = type("Player", (Player,), {"_lots": chance, **habits})
        self._plan = RunPlan(player, game, queues, most_at_once, None, on_result)
        loop.create_task(self._run())

    async def _run(self) -> None:
        self.session = BotSession(self._plan, self.wire)
        try:
            await self.session.run_session()
        except SeatwiseError as error:
            self._on_failed(f"{self.loop.name} has given up: {error!r}")
        self.has_left = True


def _transport(lot: float, has_http: bool) -> type[Wire] | type[SocketWire] | type[HttpWire]:
    """How a bot comes that draws this lot."""
    if lot < BY_WEBSOCKET:
        return SocketWire
    return HttpWire if has_http and lot < BY_WEBSOCKET + BY_HTTP else Wire


class Silent:
    """One incarnation of a bot that takes all the seats of its queue that it gets, and sits down nowhere."""

    def __init__(
        self, loop: Loop, exchange: Exchange, token: str, chance: Chance, queues: tuple[str, ...]
    ) -> None:
        self.loop = loop
        self.wire = Wire(exchange, loop, LOBBY, token)
        self.session = self
        self.has_left = False
        self._chance = chance
        self._queues = queues
        self._task = loop.create_task(self._attend())

    def drain_matches(self) -> None:
        """It goes, without a word."""
        self._task.cancel()
        self.has_left = True

    async def _attend(self) -> None:
        while True:
            with suppress(SeatwiseError):
                async with self.wire.attend() as stream:
                    await stream.write(AttendRequest(queues=self._queues, max_matches=1000))
                    while await stream.read():
                        pass
            await asyncio.sleep(self._chance.uniform(0, 1))


@dataclass
class Books:
    """What the doors say of matches."""

    states: dict[str, str] = field(default_factory=dict)
    """By GetMatch."""
    records: set[str] = field(default_factory=set)
    """Matches whose record GetRecord gives."""
    listed: list[str] = field(default_factory=list)
    """By ListMatches."""


class Office:
    """Has matches made, one after the other, and looks matches up; it repeats what was not answered."""

    def __init__(self, loop: Loop, exchange: Exchange, chance: Chance) -> None:
        self.made: list[str] = []
        self.is_done = False
        self.books: Books | None = None
        """What was found when matches were looked up."""
        self.loop = loop
        self._exchange = exchange
        self._chance = chance

    def start(self, wanted: Sequence[match_service_pb2.CreateMatchRequest], within_s: float) -> None:
        """All of them, spread over so much time."""
        self.loop.create_task(self._make_all(wanted, within_s / max(1, len(wanted))))

    async def _make_all(self, wanted: Sequence[match_service_pb2.CreateMatchRequest], pause_s: float) -> None:
        for request in wanted:
            await self.make_match(request)
            await asyncio.sleep(self._chance.uniform(0, 2 * pause_s))
        self.is_done = True

    async def make_match(self, request: match_service_pb2.CreateMatchRequest) -> str:
        """Its name."""
        answer = await self.ask("MatchService/CreateMatch", request, match_service_pb2.CreateMatchResponse)
        self.made.append(answer.match.name)
        name: str = answer.match.name
        return name

    async def ask(
        self, method: str, request: Any, response: Any, *gives_up: str, token: str = ADMIN_TOKEN
    ) -> Any:
        """The answer, however often it takes; None where it is refused for one of these reasons."""
        while True:
            try:
                return await unary(
                    self._exchange, self.loop, LOBBY, f"{PACKAGE}{method}", request, response, token
                )
            except SeatwiseError as error:
                if isinstance(error, RefusedError) and error.reason in gives_up:
                    return None
                await asyncio.sleep(self._chance.uniform(0, 1))

    def look_up(self, matches: Iterable[str]) -> None:
        """Each of these, and all that are listed."""
        self.loop.create_task(self._look_up(list(matches)))

    async def _look_up(self, matches: Sequence[str]) -> None:
        pb, books = match_service_pb2, Books()
        for name in matches:
            if found := await self.ask(
                "MatchService/GetMatch", pb.GetMatchRequest(name=name), pb.GetMatchResponse, "NOT_FOUND"
            ):
                books.states[name] = match_pb2.Match.State.Name(found.match.state).removeprefix("STATE_")
            request = pb.GetRecordRequest(name=name)
            if await self.ask(
                "MatchService/GetRecord",
                request,
                pb.GetRecordResponse,
                "NOT_FOUND",
                "MATCH_VOIDED",
                "MATCH_NOT_OVER",
            ):
                books.records.add(name)
        token = None
        while token != "":
            request = pb.ListMatchesRequest(page_size=200, page_token=token or "")
            page = await self.ask("MatchService/ListMatches", request, pb.ListMatchesResponse)
            books.listed += [match.name for match in page.matches]
            token = page.next_page_token
        self.books = books


def wanted(game: str, bots: Sequence[str], number: int, card_ms: int) -> match_service_pb2.CreateMatchRequest:
    """A short match."""
    paces = {"ugo": ("card", "arrange"), "ubongo": ("build",)}[game]
    return match_service_pb2.CreateMatchRequest(
        request_id=f"wanted-{number}",
        game=f"games/{game}",
        bots=bots,
        options={"rounds": "1"},
        time_control=time_control_pb2.TimeControl(
            free_ms=dict.fromkeys(paces, card_ms), bank_ms=1, setup_ms=2 * card_ms
        ),
    )
