"""The page of a match: what is known of it, its result, and every step of it when it is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from cachetools import LRUCache, TTLCache
from starlette.requests import Request
from starlette.responses import Response

from seatwise.kits import KITS, find_kit
from seatwise.kits.codecs import CODECS
from seatwise.kits.frames import count_totals
from seatwise.replay import Frame, MatchReplay, OpenedHands, SeatTimes, build_replay
from seatwise.replay.frame_builder import short_names
from seatwise.v1 import match_pb2, match_service_pb2
from seatwise_server.game_choice import is_hosted_game
from seatwise_server.limits import PAGE_SPECTATORS, Places
from seatwise_server.pages.page_responses import (
    PageCalls,
    address_of,
    last_part,
    note_peer,
    render_page,
    show_span,
    state_words,
)
from seatwise_server.play.game_views import GameViews, ViewsFailed
from seatwise_server.refusal import Refusal
from seatwise_server.rest.event_streams import EventStreams
from seatwise_server.rest.http_call import FOREVER, JSON_TYPE, versioned_response
from seatwise_server.streams import SharedStream


class PositionWriter:
    """Writes the positions of one match as a spectator sees them."""

    def __init__(self, match: match_pb2.Match) -> None:
        game = last_part(match.game)
        self._codec = CODECS[game]
        self._writer = find_kit(game).load_frame_writer()
        self._names = short_names(tuple(match.bots))
        self._table: Any = {}
        """The table of the newest step."""
        self._last: tuple[match_service_pb2.WatchMatchResponse, Any] | None = None
        """The position that was read last, and its view: the next step begins with it."""

    def frames_between(
        self, before: match_service_pb2.WatchMatchResponse | None, after: match_service_pb2.WatchMatchResponse
    ) -> list[Frame]:
        """Return the step to the second position, and before it the end of a round if one ended in between.

        Return no step where nothing has changed.
        """
        old, new = self._view_of(before) if before else None, self._view_of(after)
        table = self._writer.write_table(new)
        if old is None:
            return [self._frame("round", _describe_deal(table), table)]
        opened = () if before and list(before.opened) == list(after.opened) else _opened_in(after)
        if old == new and not opened:
            return []
        changes = self._writer.describe_seen_moves, self._writer.describe_change
        said = " ".join(filter(None, (describe(old, new, self._names) for describe in changes)))
        said = said or f"{show_span(after.at_ms)} after the start."
        ended = self._writer.write_round_end(old, new)
        if ended is None:
            return [self._frame("live", said, table, opened)]
        is_over = table.get("round") == ended.get("round")
        following = [] if is_over else [self._frame("round", _describe_deal(table), table)]
        return [self._frame("live", said, ended, opened), *following]

    def write_position(self, response: match_service_pb2.WatchMatchResponse) -> tuple[Frame, str]:
        """Return a position as a step that nothing led to, and as text."""
        frame = self._frame("live", "", self._writer.write_table(self._view_of(response)))
        return frame, self._writer.draw_text(frame, self._names)

    def _view_of(self, response: match_service_pb2.WatchMatchResponse) -> Any:
        if self._last is None or self._last[0] is not response:
            self._last = response, self._codec.decode_view(getattr(response, self._codec.field))
        return self._last[1]

    def _frame(self, kind: str, says: str, table: Any, opened: tuple[OpenedHands, ...] = ()) -> Frame:
        seats = len(self._names)
        last_table, self._table = self._table, table
        return Frame(
            kind=kind,
            says=says,
            asked=(),
            moves=(),
            points=count_totals(table, seats, is_running=False),
            table=table,
            own=(None,) * seats,
            times=(None,) * seats,
            left=("",) * seats,
            turn=self._writer.describe_turn(last_table, table, self._names),
            opened=opened,
        )


def _describe_deal(table: Any) -> str:
    number = table.get("round")
    return f"Round {number} is dealt." if number else "The cards are dealt."


def _opened_in(response: match_service_pb2.WatchMatchResponse) -> tuple[OpenedHands, ...]:
    return tuple(OpenedHands(each.round, tuple(map(_cards_of, each.hands))) for each in response.opened)


def _cards_of(hand: match_service_pb2.OpenedHand) -> tuple[tuple[str, str], ...]:
    symbols = hand.symbols or [""] * len(hand.cards)
    return tuple(zip(hand.cards, symbols, strict=True))


Responses = AsyncGenerator[match_service_pb2.WatchMatchResponse, None]


class LiveSteps:
    """The steps of one match so far, and its state. One task reads them, for all who look at it from this process."""

    def __init__(self) -> None:
        self.visitors = 0
        self._state = ""
        self._steps: list[bytes] = []
        """Frames as JSON."""
        self._writer: PositionWriter | None = None
        self._before: match_service_pb2.WatchMatchResponse | None = None
        self._written: tuple[int, bytes] = 0, b""
        self._stream = SharedStream()

    def start(self, responses: Responses, on_end: Callable[[], object]) -> None:
        """Begin to read all positions of the match. `on_end` is called at their end."""
        self._stream.start(responses, self._add_response, on_end)

    async def stop(self) -> None:
        """Stop reading."""
        await self._stream.stop()

    async def follow_news(self) -> AsyncIterator[bytes]:
        """Yield the state of the match whenever it changes, and steps: the newest one, then all others as they come.

        `first` is the number of the first of these steps, from 0. Raises what has ended the reading.
        """
        state, count = "", -1
        while True:
            if state != self._state:
                state = self._state
                yield _to_json({"state": state})
            if len(self._steps) > max(count, 0):
                count = len(self._steps) - 1 if count < 0 else count
                yield b'{"frames":[%s],"first":%d}' % (b",".join(self._steps[count:]), count)
                count = len(self._steps)
            elif state == self._state and not await self._stream.wait_for_change():
                return

    async def write_steps(self) -> bytes:
        """Return all steps so far as JSON: `{"frames": [...]}`. Waits for the first one. Raises as `follow_news`."""
        while not self._steps and await self._stream.wait_for_change():
            pass
        if self._written[0] != len(self._steps) or not self._steps:
            self._written = len(self._steps), b'{"frames":[%s]}' % b",".join(self._steps)
        return self._written[1]

    def _add_response(self, response: match_service_pb2.WatchMatchResponse) -> None:
        if response.HasField("match"):
            self._writer = self._writer or PositionWriter(response.match)
            self._state = state_words(response.match.state)
        elif self._writer and response.WhichOneof("view"):
            frames = self._writer.frames_between(self._before, response)
            self._steps += [_to_json(frame.to_json()) for frame in frames]
            self._before = response


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


POSITION_S = 2.0
"""How long a page waits for the position of a match."""
QUICK_POSITION_S = 0.5
"""How long it waits where spectators may be shown none: for a game from outside, and for many matches at once."""
READ_POSITION_S = 10.0
"""How long it is read. A later page shows it then: of a game from outside, the first one may come after its check alone."""
KEPT_POSITIONS = 64
SHARED_POSITION_S = 2.0
KNOWN_POSITION_S = 15.0
"""How old a position may be that is shown because the server is busy."""
WATCH = "MatchService/WatchMatch"


class LiveFrames:
    """Answers /matches/{match}/live, a stream of steps, and /matches/{match}/live/steps, all of them so far."""

    def __init__(self, calls: PageCalls, streams: EventStreams) -> None:
        self._calls = calls
        self._streams = streams
        self._matches: dict[str, LiveSteps] = {}
        self._quota = Places(PAGE_SPECTATORS)
        self._positions: TTLCache[str, asyncio.Task[tuple[Frame, str] | None]]
        self._positions = TTLCache(KEPT_POSITIONS, SHARED_POSITION_S)
        self._known: TTLCache[str, tuple[Frame, str]] = TTLCache(KEPT_POSITIONS, KNOWN_POSITION_S)

    async def answer(self, request: Request, values: list[str]) -> Response:
        """Return the stream, which is refused where `WatchMatch` is refused."""
        note_peer(request)
        return self._streams.response_of(request, self._follow_news(f"matches/{values[0]}"))

    async def answer_steps(self, request: Request, values: list[str]) -> Response:
        """Return the steps so far; none if spectators are shown none yet. Refused as the stream."""
        note_peer(request)
        written = b'{"frames":[]}'
        async with self._steps_of(f"matches/{values[0]}") as steps:
            with suppress(TimeoutError):
                async with asyncio.timeout(READ_POSITION_S):
                    written = await steps.write_steps()
        headers = {"cache-control": "no-store", "vary": "accept-encoding"}
        return Response(written, headers=headers, media_type=JSON_TYPE)

    async def find_position(self, name: str, wait_s: float = POSITION_S) -> tuple[Frame, str] | None:
        """Return the newest position that spectators may see, also as text; `None` if none comes soon.

        One reading serves all who ask within `SHARED_POSITION_S`, and is no read of theirs.
        """
        if (reading := self._positions.get(name)) is None:
            reading = self._positions[name] = asyncio.create_task(self._read_position(name))
        await asyncio.wait({reading}, timeout=wait_s)
        return (reading.result() if reading.done() else None) or self._known.get(name)

    async def find_positions(self, matches: Iterable[match_pb2.Match]) -> dict[str, Frame]:
        """Return the newest positions of those of these matches that spectators are shown, by their names."""
        names = [match.name for match in matches if not match.deal_set.name]
        found = await asyncio.gather(*(self.find_position(name, QUICK_POSITION_S) for name in names))
        return {name: position[0] for name, position in zip(names, found, strict=True) if position}

    async def _read_position(self, name: str) -> tuple[Frame, str] | None:
        writer: PositionWriter | None = None
        with suppress(Refusal, TimeoutError):
            async with (
                asyncio.timeout(READ_POSITION_S),
                aclosing(await self._calls.open_shared_stream(WATCH, name=name)) as responses,
            ):
                async for response in responses:
                    if response.HasField("match"):
                        writer = PositionWriter(response.match)
                    elif writer and response.WhichOneof("view"):
                        self._known[name] = writer.write_position(response)
                        return self._known[name]
        return None

    async def _follow_news(self, name: str) -> AsyncGenerator[bytes, None]:
        with self._quota.reserve_place():
            async with self._steps_of(name) as steps:
                async for news in steps.follow_news():
                    yield news

    @asynccontextmanager
    async def _steps_of(self, name: str) -> AsyncIterator[LiveSteps]:
        """The steps of a match, which are read as long as somebody is inside this block."""
        await self._calls.admit(WATCH, name=name, all_positions=name not in self._matches)
        steps = self._matches.get(name) or self._begin_steps(name)
        steps.visitors += 1
        try:
            yield steps
        finally:
            steps.visitors -= 1
            if not steps.visitors:
                self._forget_steps(name, steps)  # now: who comes while they stop needs others
                await steps.stop()

    def _begin_steps(self, name: str) -> LiveSteps:
        steps = self._matches[name] = LiveSteps()
        steps.start(self._read_all(name), on_end=lambda: self._forget_steps(name, steps))
        return steps

    def _forget_steps(self, name: str, steps: LiveSteps) -> None:
        if self._matches.get(name) is steps:
            del self._matches[name]

    async def _read_all(self, name: str) -> Responses:
        responses = await self._calls.open_shared_stream(WATCH, name=name, all_positions=True)
        async with aclosing(responses):
            async for response in responses:
                yield response


KEPT_REPLAYS = 64 * 2**20
"""The bytes of replays of finished matches in memory: to make one takes some 10 ms, and everybody looks at the same."""


@dataclass(frozen=True, slots=True)
class KeptReplay:
    """A finished match, as pages show it."""

    replay: MatchReplay
    json: bytes
    """The replay as the viewer in the browser reads it."""
    decisive_step: int
    position: str = ""
    """The last position of a game from outside, as text."""

    def read_frame(self, step: int) -> Frame:
        """Return a step with all that lies on the table: of a game from outside, only the JSON has it."""
        frame = self.replay.frames[step]
        told = {} if frame.own else json.loads(self.json)["frames"][step]
        return frame if frame.own else replace(frame, table=told["table"], own=tuple(told["own"]))


class MatchPage:
    """Answers /matches/{match} and /matches/{match}/frames."""

    def __init__(self, calls: PageCalls, live: LiveFrames) -> None:
        self._calls = calls
        self._live = live
        self._views = GameViews()
        self._kept: LRUCache[str, KeptReplay] = LRUCache(KEPT_REPLAYS, lambda kept: len(kept.json))

    async def make_page(self, request: Request, values: list[str]) -> bytes:
        """Return the page of one match."""
        name = f"matches/{values[0]}"
        match = (await self._calls.call("MatchService/GetMatch", name=name)).match
        is_hosted = is_hosted_game(match.game)
        kept = None
        with suppress(ViewsFailed):
            kept = await self.find_replay(name) if match.HasField("result") else None
        is_live = match.state == match_pb2.Match.STATE_RUNNING
        position = await self._find_position(match) if is_live else kept.position if kept else ""
        is_open = not is_hosted and not match.deal_set.name and not match.HasField("end_time")
        return render_page(
            "match.html.j2",
            match=match,
            replay=kept.replay if kept else None,
            seats=_seat_lines(match, kept),
            rounds=match.result.rounds,
            chain=kept.replay.chain if kept else match.result.chain.hex(),
            is_hosted=is_hosted,
            has_rules=_has_rules(match.game),
            is_live=is_live,
            position=position,
            has_viewer=bool(kept or position or is_open),
            address=address_of(request),
            viewer_match=viewer_match(match),
        )

    async def _find_position(self, match: match_pb2.Match) -> str:
        """Return the position of a live match as text; empty if spectators may see none."""
        if match.deal_set.name:
            return ""
        wait_s = QUICK_POSITION_S if is_hosted_game(match.game) else POSITION_S
        found = await self._live.find_position(match.name, wait_s)
        return found[1] if found else ""

    async def answer_frames(self, request: Request, values: list[str]) -> Response:
        """Return the steps of a finished match as JSON. They never change."""
        note_peer(request)
        try:
            kept = await self.find_replay(f"matches/{values[0]}")
        except ViewsFailed as failed:
            why = f"its steps cannot be shown ({failed}); download the record"
            raise Refusal("NOT_FOUND", why) from None
        cache_control = f"public, {FOREVER}"
        return versioned_response(request, kept.replay.chain, cache_control, lambda: kept.json)

    async def find_replay(self, name: str) -> KeptReplay:
        """Return the replay. Raises `Refusal` where the record cannot be read yet."""
        kept = self._kept.get(name)
        if kept is None:
            match = (await self._calls.call("MatchService/GetMatch", name=name)).match
            record = (await self._calls.call("MatchService/GetRecord", name=name)).record
            if is_hosted_game(match.game):
                kept = _read_replay(*await self._views.make_replay(last_part(match.game), record))
            else:
                kept = await asyncio.to_thread(_make_replay, record)
            self._kept[name] = kept
        return kept


def _read_replay(written: str, position: str) -> KeptReplay:
    """Return the replay that the process of games from outside has made; its frames have what the page tells of them, and no drawing."""
    told = json.loads(written)
    frames = []
    for each in told["frames"]:
        times = [times and SeatTimes(**times) for times in each["times"]]
        frames.append(Frame(**{**each, "moves": (), "table": {}, "own": (), "times": times}))
    names = {field.name for field in fields(MatchReplay)}
    replay = MatchReplay(**{name: told[name] for name in names} | {"frames": frames})
    return KeptReplay(replay, written.encode(), told["decisive_step"], position)


def _make_replay(record: str) -> KeptReplay:
    replay = build_replay(json.loads(record))
    return KeptReplay(replay, _to_json(replay.to_json()), replay.decisive_step)


def _has_rules(game: str) -> bool:
    """Return whether the page of the rules of a game from outside exists."""
    kit = KITS.get(last_part(game))
    return bool(kit and getattr(kit.game, "rules_text", ""))


def viewer_match(match: match_pb2.Match) -> str:
    """Return what the viewer must know of a match before its first position, as JSON."""
    known = {"match": match.name, "game": last_part(match.game), "bots": list(match.bots)}
    return json.dumps(known | {"names": list(short_names(tuple(match.bots)))})


def _seat_lines(match: match_pb2.Match, kept: KeptReplay | None) -> list[dict[str, Any]]:
    """Return a line for each seat: its bot, its result, and how long it thought."""
    times = kept.replay.frames[-1].times if kept and kept.replay.frames else ()
    lines = []
    for seat, bot in enumerate(match.bots):
        line: dict[str, Any] = {"seat": seat, "bot": bot, "times": times[seat] if times else None}
        if match.HasField("result"):
            result = match.result
            line |= {
                "points": result.points[seat],
                "rank": result.ranks[seat],
                "ending": result.endings[seat],
            }
            line["rounds"] = [each.points[seat] for each in result.rounds]
        lines.append(line)
    return lines
