"""One match between bots of this process, with the referee's own rules and state machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Any, Final

from seatwise.bot import Bot, BotFactory, Failure, ask_bot, new_bot
from seatwise.errors import BadAnswerError, ResignMatch
from seatwise.kits import KITS
from seatwise.kits.game_kit import WORK, RaceMethod, TurnMethod
from seatwise.local.race import Builder, LocalRace, close_generator
from seatwise.offer import Offer
from seatwise.output import raise_lost_output
from seatwise.result import Result, result_of
from seatwise.standings import PlayedMatch
from seatwise_referee import record
from seatwise_referee.decision import Effect, RejectRequest, WakeAt
from seatwise_referee.ending import VoidReason
from seatwise_referee.game import Prompt, Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.hosted.hosted_game import GameFault
from seatwise_referee.journal import Entry, JournalEntry, encode_entry
from seatwise_referee.match import Match
from seatwise_referee.setup import MEASURED, PRICED, Setup
from seatwise_referee.shuffle import commitment_to
from seatwise_referee.time_control import TimeControl

FREE_MS = 60_000
"""No bot runs out of it: the clock of a local table stops before that."""

NS_PER_MS = 1_000_000
NS_PER_US = 1000
END: Final = object()
"""Marks the end of a bot's generator."""
BUILT = "its cards stay as they lie, and it agrees to end the round"
STRIKE = "a time-out: its default move is played"
ASKED_AGAIN = "the referee refuses it, and asks again"
NOT_SEATED = "it does not sit down: the match is played without it"


def local_time_control(game: str) -> TimeControl:
    """Return a time control under which a slow machine changes nothing."""
    free_ms = dict.fromkeys(GAMES[game].paces, FREE_MS)
    return TimeControl(
        free_ms=free_ms, bank_ms=0, grace_ms=0, setup_ms=FREE_MS, allowance_cap_ms=0, handover_ms=0
    )


def local_times(game: str, times: str = PRICED) -> str:
    """Return the kind of times for the set-up of a match at a local table. Only a game with races has one."""
    return times if KITS[game].has_races else ""


@dataclass(frozen=True, slots=True)
class LocalPlayer:
    """The bot of one seat, and its random numbers."""

    name: str
    factory: BotFactory
    nonce: bytes
    chance: random.Random


class LocalTable:
    """Asks each bot in turn. An exception costs a bot that move, as a time-out does on the server."""

    def __init__(
        self,
        setup: Setup,
        players: Sequence[LocalPlayer],
        failed: Callable[[Failure], None],
        wait: Callable[[Any], Any],
        recorded: Mapping[tuple[int, Seat], Any] | None = None,
        last_move: int | None = None,
    ) -> None:
        """Create it. `recorded` are moves by prompt and seat that no bot is asked for; after `last_move` the match is aborted."""
        self._setup = setup
        self._players = players
        self._failed = failed
        self._wait = wait
        self._recorded = recorded or {}
        self._last_move = last_move
        self._match = Match(setup)
        self._kit = KITS[setup.game]
        self._entries: list[Entry] = []
        self._wake_at_ms = 0
        self._now_ns = 0
        self._bots: dict[Seat, Bot] = {}
        self._moves = [0] * len(players)
        self._failures = [0] * len(players)
        self._said = 0
        self._thought_ns = [0] * len(players)

    def play_match(self) -> PlayedMatch:
        """Play the whole match."""
        try:
            self._play_to_the_end()
        except GameFault as fault:
            self._void_match(fault)
        for seat, bot in self._bots.items():
            self._tell_result(seat, bot)
        return self._played_match()

    def _play_to_the_end(self) -> None:
        for seat in map(Seat, range(len(self._players))):
            self._seat_bot(seat)
        if self._match.position.state is None:
            self._run_out_of_time()
        while (prompt := self._match.position.prompt) is not None:
            if self._last_move is not None and prompt.number > self._last_move:
                self._perform_effects(self._match.void_match(VoidReason.ABORTED, self._now_ms))
                break
            method = self._kit.find_method(prompt.pace)
            if isinstance(method, RaceMethod):
                self._run_race(prompt, method)
                continue
            answers = [self._ask_bot(seat, prompt, method) for seat in sorted(prompt.seats)]
            if not all(answers):  # last, so that it costs no other seat time
                self._run_out_of_time()

    def _void_match(self, fault: GameFault) -> None:
        """The game's own code has failed: the match has no result."""
        setup = self._setup
        self._failed(Failure(setup.game, setup.match, Seat(0), "play", fault, "the match is void"))
        self._match = Match(setup, self._match.position)
        self._perform_effects(self._match.void_match(VoidReason.GAME_FAULT, self._now_ms))

    def write_record(self) -> bytes | None:
        """Return the record of the finished match; `None` if it was voided."""
        with suppress(record.NotFinished):
            return record.write_record(self._setup, list(map(encode_entry, self._entries))).line
        return None

    # The match

    def _seat_bot(self, seat: Seat) -> None:
        player = self._players[seat]
        offer = Offer(
            match=self._setup.match,
            seat=seat,
            game=self._setup.game,
            bots=self._setup.bots,
            options=self._setup.options,
            time_control=self._setup.time_control,
            commitment=commitment_to(self._setup.seed),
        )
        try:
            bot = new_bot(player.factory, offer, player.chance)
            self._wait(bot.setup(offer))
        except (Exception, SystemExit) as error:
            self._report_failure(seat, "set up", error, NOT_SEATED)
            return
        self._bots[seat] = bot
        self._perform_effects(self._match.sit(seat, player.nonce, self._now_ms))

    def _ask_bot(self, seat: Seat, prompt: Prompt, method: TurnMethod) -> bool:
        """Ask the bot, and submit its move. Return whether there is one, or the bot has resigned."""
        self._perform_effects(self._match.note_delivery(seat, prompt.number, self._now_ms))
        if (move := self._recorded.get((prompt.number, seat))) is not None:
            number = prompt.number
            self._perform_effects(self._match.submit_move(seat, number, str(number), move, self._now_ms))
            return True
        self._moves[seat] += 1
        view = self._match.view_for(seat)
        started_ns = perf_counter_ns()
        try:
            move = self._wait(ask_bot(self._bots[seat], method, view))
        except ResignMatch:
            self._perform_effects(self._match.resign(seat, self._now_ms))
            return True
        except (Exception, SystemExit) as error:
            self._failures[seat] += 1
            self._report_failure(seat, method.name, error, STRIKE)
            return False
        self._spend_time(seat, perf_counter_ns() - started_ns)
        refused = self._match.position.seats[seat].rejections
        request_id = f"{prompt.number}.{refused}" if refused else str(prompt.number)
        effects = self._match.submit_move(seat, prompt.number, request_id, move, self._now_ms)
        for effect in effects:
            if isinstance(effect, RejectRequest):
                self._failures[seat] += 1
                self._report_failure(seat, method.name, BadAnswerError(effect.message), ASKED_AGAIN)
        self._perform_effects(effects)
        return True

    def _run_race(self, prompt: Prompt, method: RaceMethod) -> None:
        """Play a round in which all seats build at once, in virtual time."""
        start_ms = self._now_ms
        for seat in sorted(prompt.seats):
            self._perform_effects(self._match.note_delivery(seat, prompt.number, start_ms))
        builders = [self._make_builder(seat, method) for seat in sorted(prompt.seats)]

        def submit(seat: Seat, move: Any, at_ms: int) -> None:
            if self._is_open(prompt):
                self._advance_to(start_ms + at_ms)
                self._said += 1
                self._perform_effects(
                    self._match.submit_move(seat, prompt.number, str(self._said), move, start_ms + at_ms)
                )

        ask = partial(self._next_step, method)
        is_measured = self._setup.times == MEASURED
        race = LocalRace(self._kit.race_rules, method, builders, ask, submit, is_measured=is_measured)
        while self._is_open(prompt):
            due_ms = race.next_ms
            if due_ms is None or self._wake_at_ms <= start_ms + due_ms:
                self._advance_to(max(self._wake_at_ms, self._now_ms + 1))
                self._perform_effects(self._match.tick(self._now_ms))
            else:
                race.run_next_step()
        for builder in builders:
            close_generator(builder, self._wait)

    def _is_open(self, prompt: Prompt) -> bool:
        current = self._match.position.prompt
        return current is not None and current.number == prompt.number

    def _make_builder(self, seat: Seat, method: RaceMethod) -> Builder:
        """Return the seat with its bot's generator; an empty generator if the bot fails to make one."""
        view = self._match.view_for(seat)
        try:
            generator = getattr(self._bots[seat], method.name)(view)
            if not hasattr(generator, "__next__") and not hasattr(generator, "__anext__"):
                raise BadAnswerError(f"{method.name}(view) must be a generator: {method.usage}")
        except (Exception, SystemExit) as error:
            self._failed_to_build(seat, method, error)
            generator = iter(())
        return Builder(seat, generator, method.new_reader(view))

    def _next_step(self, method: RaceMethod, builder: Builder) -> Any:
        self._moves[builder.seat] += 1
        started_ns, before_us = perf_counter_ns(), WORK.spent_us
        generator = builder.generator
        try:
            is_async = hasattr(generator, "__anext__")
            answer = self._wait(anext(generator, END)) if is_async else next(generator, END)
            return None if answer is END else builder.reader.read_step(answer)
        except (Exception, SystemExit) as error:
            self._failed_to_build(builder.seat, method, error)
            return None
        finally:
            taken_ns = perf_counter_ns() - started_ns
            self._thought_ns[builder.seat] += taken_ns
            is_measured = self._setup.times == MEASURED
            builder.owed_us += taken_ns // NS_PER_US if is_measured else WORK.spent_us - before_us

    def _failed_to_build(self, seat: Seat, method: RaceMethod, error: BaseException) -> None:
        self._failures[seat] += 1
        self._report_failure(seat, method.name, error, BUILT)

    def _advance_to(self, now_ms: int) -> None:
        self._now_ns = max(self._now_ns, now_ms * NS_PER_MS)

    def _tell_result(self, seat: Seat, bot: Bot) -> None:
        try:
            self._wait(bot.ended(self._result_for(seat)))
        except (Exception, SystemExit) as error:
            self._report_failure(seat, "ended", error, "it costs nothing")

    def _report_failure(self, seat: Seat, doing: str, error: BaseException, costs: str) -> None:
        raise_lost_output(error)
        self._failed(Failure(self._players[seat].name, self._setup.match, seat, doing, error, costs))

    def _perform_effects(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, JournalEntry):  # quicker than patterns, and every move comes here
                self._entries.append(effect)
            elif isinstance(effect, WakeAt) and effect.at_ms is not None:
                self._wake_at_ms = effect.at_ms
        if not self._match.is_confirmed:
            self._perform_effects(self._match.confirm_entries(self._now_ms))

    # Time: only that which bots think, and never more of it than they have

    @property
    def _now_ms(self) -> int:
        return self._now_ns // NS_PER_MS

    def _spend_time(self, seat: Seat, thought_ns: int) -> None:
        self._thought_ns[seat] += thought_ns
        self._now_ns += min(thought_ns, (FREE_MS - 1) * NS_PER_MS)

    def _run_out_of_time(self) -> None:
        self._now_ns = self._wake_at_ms * NS_PER_MS
        self._perform_effects(self._match.tick(self._now_ms))

    # The end

    def _result_for(self, seat: Seat) -> Result:
        end = self._match.position.end
        assert end is not None
        return result_of(end, self._setup.match, seat, self._setup.seed)

    def _played_match(self) -> PlayedMatch:
        result = self._result_for(Seat(0))
        return PlayedMatch(
            match=self._setup.match,
            bots=tuple(player.name for player in self._players),
            points=result.points,
            ranks=result.ranks,
            endings=result.endings,
            rounds=result.rounds,
            void_reason=result.void_reason,
            moves=tuple(self._moves),
            failures=tuple(self._failures),
            thought_ms=tuple(spent / NS_PER_MS for spent in self._thought_ns),
        )
