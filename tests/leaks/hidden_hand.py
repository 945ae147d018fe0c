"""Whether the time of anything that a bot of UGO! is told depends on the hidden hand of its opponent, in real time on a real server.

python tests/leaks/hidden_hand.py [--seconds 1500] [--plant-us 300]

Bots of two seats answer at a fixed time after the last move of their match, whatever they hold. So what depends on a hand is the
server's. Three delays are compared with the number of colours in the opponent's hand, at the same trick and after the same sequence of
moves. A permutation gives each match the hands of another match. `--plant-us` lets bots wait so long for each colour that they
hold: the test has to find it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import grpc
import numpy as np
from load import Stream
from serving import serving

from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import (
    bot_service_pb2,
    bot_service_pb2_grpc,
    lobby_service_pb2,
    match_service_pb2,
    match_service_pb2_grpc,
)
from seatwise.v1 import play_service_pb2 as pb

ANSWER_AFTER_S = 0.06
"""From the last move of the match to the next one."""
EARLY_ENOUGH_S = 0.002
PAUSE_S = 5.0
PAIRS = 6
LEAST_GROUP = 30
PERMUTATIONS = 2000
SIGHT = 1.96 + 0.84
"""In standard errors: the smallest correlation that a two-sided test at 5 % finds in 80 % of runs."""
CHANNELS = ("own move to its acceptance", "last move to the next prompt", "own move to the own next prompt")


class Sample(NamedTuple):
    """One delay, and what was hidden meanwhile."""

    match: str
    place: tuple[int, int, int, int]
    """Seat, round, and the number of cards in both hands."""
    path: str
    """The moves since the own one: what has to be equal for delays to be comparable."""
    delay_us: float
    size: int
    """Of the message in bytes: all that is public is in it, and may go with what is hidden."""
    colours: int


@dataclass
class Game:
    """One match that is being played."""

    moved_at: float = 0.0
    path: list[str] = field(default_factory=lambda: ["", ""])
    """By seat: the moves since its own last one."""
    own_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    hands: list[tuple[int, set[int]]] = field(default_factory=lambda: [(0, set()), (0, set())])
    """By seat: the round, and its cards."""
    prompts: list[int] = field(default_factory=lambda: [0, 0])
    sizes: list[int] = field(default_factory=lambda: [0, 0])
    is_late: list[bool] = field(default_factory=lambda: [False, False])
    """By seat: whether an answer since its own last move was late."""
    ended: int = 0

    def colours_of(self, seat: int, in_round: int) -> int | None:
        """The colours that the seat holds; None where it is not known."""
        played, hand = self.hands[seat]
        return len({(card - 1) // 9 for card in hand}) if played == in_round else None


class Field:
    """All bots, their matches, and the samples."""

    def __init__(self, address: str, admin: str, plant_s: float) -> None:
        self._address, self._plant_s, self._starts = address, plant_s, 0
        self._admin = (("authorization", f"Bearer {admin}"),)
        self._games: dict[str, Game] = defaultdict(Game)
        self.samples: list[list[Sample]] = [[] for _ in CHANNELS]
        self.late = self.ended = 0

    async def play_until_a_stream_breaks(self) -> None:
        """Let new bots play."""
        self._games.clear()
        self._starts += 1
        async with asyncio.TaskGroup() as self._group:
            self._creator = grpc.aio.insecure_channel(self._address)
            for pair in range(PAIRS):
                for side in range(2):
                    await self._connect(f"pair-{self._starts}-{pair}-{side}", pair)
                await self._create(pair)

    async def _connect(self, name: str, pair: int) -> None:
        channel = grpc.aio.insecure_channel(self._address, options=[("grpc.use_local_subchannel_pool", 1)])
        stub: Any = bot_service_pb2_grpc.BotServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        told = await stub.RegisterBot(bot_service_pb2.RegisterBotRequest(bot=name), metadata=self._admin)
        metadata = (("authorization", f"Bearer {told.token}"),)
        play = Stream(channel.stream_stream("/seatwise.v1.PlayService/Play")(metadata=metadata))
        self._group.create_task(play.write_all())
        self._group.create_task(play.read_all(lambda raw: self._take(play, raw, pair)))
        attend: Any = channel.stream_stream(
            "/seatwise.v1.LobbyService/Attend",
            request_serializer=lobby_service_pb2.AttendRequest.SerializeToString,
            response_deserializer=lobby_service_pb2.AttendResponse.FromString,
        )(metadata=metadata)
        await attend.write(lobby_service_pb2.AttendRequest(queues=[], max_matches=4))
        self._group.create_task(Stream(attend).read_all(lambda told: self._sit(play, told)))

    async def _create(self, pair: int) -> None:
        stub: Any = match_service_pb2_grpc.MatchServiceStub(self._creator)  # type: ignore[no-untyped-call]  # generated
        bots = [f"bots/pair-{self._starts}-{pair}-{side}/versions/1" for side in range(2)]
        await stub.CreateMatch(
            match_service_pb2.CreateMatchRequest(game="games/ugo", bots=bots), metadata=self._admin
        )

    def _sit(self, play: Stream, told: lobby_service_pb2.AttendResponse) -> None:
        if told.HasField("offer"):
            self._send(play, told.offer.match, told.offer.seat, sit=pb.Sit(nonce=os.urandom(32)))

    def _send(self, play: Stream, match: str, seat: int, **action: Any) -> None:
        item = pb.PlayRequestItem(match=match, seat=seat, **action)
        play.send(pb.PlayRequest(items=[item]).SerializeToString())

    def _take(self, play: Stream, raw: bytes, pair: int) -> None:
        at = time.perf_counter()
        for item in pb.PlayResponse.FromString(raw).items:
            kind = item.WhichOneof("event")
            if kind == "ping":
                pong = pb.PlayRequestItem(pong=pb.Pong(number=item.ping.number))
                play.send(pb.PlayRequest(items=[pong]).SerializeToString())
                continue
            game, seat = self._games[item.match], item.seat
            if kind == "update" and item.update.to_act and item.update.prompt > game.prompts[seat]:
                self._answer(play, item.match, seat, item.update, at)
            elif kind == "move_accepted":
                self._note(0, item.match, seat, game.path[seat], at - game.own_at[seat], item.ByteSize())
            elif kind == "move_rejected":
                raise RuntimeError(item.move_rejected.message)
            elif kind == "match_ended":
                game.ended += 1
                if game.ended == 2:
                    del self._games[item.match]
                    self.ended += 1
                    self._group.create_task(self._create(pair))

    def _answer(self, play: Stream, match: str, seat: int, update: pb.Update, at: float) -> None:
        game, view, size = self._games[match], update.ugo, update.ByteSize()
        game.prompts[seat], game.sizes[seat] = update.prompt, len(view.hand)
        game.hands[seat] = view.round, set(view.hand)
        if path := game.path[seat]:
            self._note(1, match, seat, path, at - game.moved_at, size)
            if not game.is_late[seat]:
                waited = path.count("o") * ANSWER_AFTER_S
                self._note(2, match, seat, path, at - game.own_at[seat] - waited, size)
        waits_s = ANSWER_AFTER_S + self._plant_s * len({(card - 1) // 9 for card in view.hand})
        left_s = (game.moved_at or at) + waits_s - time.perf_counter()
        if game.moved_at and left_s < EARLY_ENOUGH_S:
            game.is_late, self.late = [True, True], self.late + 1
        asyncio.get_running_loop().call_later(left_s, self._move, play, match, seat, update)

    def _move(self, play: Stream, match: str, seat: int, update: pb.Update) -> None:
        game, view = self._games[match], update.ugo
        if view.legal_cards:
            card = view.legal_cards[update.prompt % len(view.legal_cards)]
            move = ugo_pb2.Move(play=card)
            game.hands[seat][1].discard(card)
        else:
            move = ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=view.won_cards))
        game.path[seat] = kind = "c" if view.legal_cards else "a"
        if game.path[1 - seat]:
            game.path[1 - seat] += "o" + kind
        game.is_late[seat] = False
        game.moved_at = game.own_at[seat] = time.perf_counter()
        submit = pb.SubmitMove(request_id=f"{update.prompt}", prompt=update.prompt, ugo=move)
        self._send(play, match, seat, submit_move=submit)

    def _note(self, channel: int, match: str, seat: int, path: str, delay_s: float, size: int) -> None:
        game = self._games[match]
        in_round = game.hands[seat][0]
        colours = game.colours_of(1 - seat, in_round)
        if colours is not None:
            place = seat, in_round, game.sizes[seat], len(game.hands[1 - seat][1])
            self.samples[channel].append(Sample(match, place, path, 1e6 * delay_s, size, colours))


class Found(NamedTuple):
    """What one channel shows."""

    samples: int
    matches: int
    correlation: float
    p_value: float
    smallest: float
    """The smallest correlation that the run would have found in four of five cases."""
    us_a_colour: float
    """The slope of the delay, in microseconds a colour; by the median of all groups."""


def compare(samples: Sequence[Sample], chance: np.random.Generator, *, as_they_come: bool) -> Found:
    """Compare delays with hands. `as_they_come` leaves the trick, the moves and the public part of the view in the delays."""
    matches = sorted({each.match for each in samples})
    places = sorted({each.place for each in samples})
    row_of, column_of = {m: i for i, m in enumerate(matches)}, {p: i for i, p in enumerate(places)}
    rows = np.array([row_of[each.match] for each in samples])
    columns = np.array([column_of[each.place] for each in samples])
    colours = np.full((len(matches), len(places)), np.nan)
    colours[rows, columns] = [each.colours for each in samples]
    delays = np.array([each.delay_us for each in samples])
    if as_they_come:
        delays -= delays.mean()
    else:
        colours -= np.nanmean(colours, axis=0)
        delays = _rank_within_groups(samples, delays)

    def correlate(order: Any) -> float:
        hidden = colours[order[rows], columns]
        known = ~np.isnan(hidden)
        return float(np.corrcoef(hidden[known], delays[known])[0, 1])

    plain = np.arange(len(matches))
    found = correlate(plain)
    drawn = np.array([correlate(chance.permutation(plain)) for _ in range(PERMUTATIONS)])
    middle = float(drawn.mean())
    p_value = (1 + int((np.abs(drawn - middle) >= abs(found - middle)).sum())) / (1 + PERMUTATIONS)
    return Found(len(samples), len(matches), found, p_value, SIGHT * float(drawn.std()), _slope(samples))


def _groups(samples: Sequence[Sample]) -> list[Any]:
    """Return the numbers of the samples of each trick and sequence of moves, where there are enough."""
    found: dict[Any, list[int]] = defaultdict(list)
    for number, each in enumerate(samples):
        found[each.place[2:], each.path].append(number)
    return [np.array(group) for group in found.values() if len(group) >= LEAST_GROUP]


def _rank_within_groups(samples: Sequence[Sample], delays: Any) -> Any:
    """Return the rank of each delay in its group, less what the size of the message explains; 0 in a small group."""
    ranks, sizes = np.zeros(len(samples)), np.array([each.size for each in samples], float)
    for group in _groups(samples):
        own = delays[group].argsort().argsort() / len(group) - 0.5
        size = sizes[group] - sizes[group].mean()
        ranks[group] = own - own.mean() - size * (own @ size) / max(1.0, float(size @ size))
    return ranks


def _slope(samples: Sequence[Sample]) -> float:
    """Return the median slope over the groups, without the slowest tenth of each."""
    slopes, weights = [], []
    for group in _groups(samples):
        own = sorted((samples[number] for number in group), key=lambda each: each.delay_us)[
            : len(group) * 9 // 10
        ]
        hidden = np.array([each.colours for each in own], float)
        if hidden.std():
            slopes.append(float(np.polyfit(hidden, [each.delay_us for each in own], 1)[0]))
            weights.append(len(own))
    return float(np.average(slopes, weights=weights)) if slopes else 0.0


async def play(address: str, token: str, seconds: float, plant_us: float) -> Field:
    """Play for so long; with new bots where a stream breaks."""
    until, found = time.monotonic() + seconds, Field(address, token, plant_us / 1e6)
    while time.monotonic() < until:
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                try:
                    await found.play_until_a_stream_breaks()
                except* (grpc.aio.AioRpcError, ConnectionError) as broken:
                    print(f"a stream broke: {str(broken.exceptions[0])[:300]}", flush=True)
                    await asyncio.sleep(PAUSE_S)
    return found


def main() -> None:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--plant-us", type=float, default=0)
    args = parser.parse_args()
    with serving() as served:
        server = served.start("--role", "all", "--no-house-bots")
        found = asyncio.run(play(server.address, server.token, args.seconds, args.plant_us))
    print(f"{found.ended} matches, {found.late} answers that were late, load {os.getloadavg()}")
    chance = np.random.default_rng(1)
    for name, samples in zip(CHANNELS, found.samples, strict=True):
        for words, as_they_come in (
            ("as they come", True),
            ("at the same trick, after the same moves", False),
        ):
            of = compare(samples, chance, as_they_come=as_they_come)
            print(
                f"{name}, {words}: {of.samples} delays of {of.matches} matches, correlation {of.correlation:+.4f}, "
                f"p = {of.p_value:.4f}, smallest to be seen {of.smallest:.4f}, {of.us_a_colour:+.1f} us a colour",
                flush=True,
            )


if __name__ == "__main__":
    main()
