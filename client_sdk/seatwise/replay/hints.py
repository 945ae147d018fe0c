"""The moves of a sample bot in a position, for authors who look for the mistake of their own bot."""

from __future__ import annotations

from random import Random
from typing import Any

from seatwise.bot import Bot, ask_bot
from seatwise.kits import find_kit
from seatwise.kits.game_kit import RaceMethod
from seatwise.race_steps import Thought
from seatwise.samples import sample
from seatwise_referee.game import Json
from seatwise_referee.games.registry import GAMES

HINT_SEED = 0
"""Of the sample's chance, so that a hint is the same each time."""


class HintSource:
    """Asks the sample bot of a game that gives hints. It sees what the seat saw, and no more."""

    def __init__(self, game: str) -> None:
        kit = find_kit(game)
        self.bot_name = kit.hint_sample
        """The name of the sample."""
        self._kit = kit
        self._game = GAMES[game]
        self._writer = kit.load_frame_writer()

    def suggest_move(self, pace: str, view: Any) -> str:
        """Return what the sample does with this view, as the end of a sentence: "plays R3"."""
        method = self._kit.find_method(pace)
        bot = sample(self.bot_name, self._kit.name)()
        bot.chance = Random(HINT_SEED)
        if isinstance(method, RaceMethod):
            return ", and ".join(map(self._writer.describe_move, self._race_moves(bot, method, view)))
        return self._writer.describe_move(self._game.move_to_json(ask_bot(bot, method, view)))

    def _race_moves(self, bot: Bot, method: RaceMethod, view: Any) -> list[Json]:
        """Return the sample's last layout, and the move after it, if there is one."""
        reader = method.new_reader(view)
        steps = (reader.read_step(answer) for answer in getattr(bot, method.name)(view))
        moves = [step for step in steps if not isinstance(step, Thought)]
        lays = [move for move in moves if self._kit.race_rules.is_lay(move)]
        return list(map(self._game.move_to_json, [*lays[-1:], *moves[-1:]][-2:] if lays else moves[-1:]))
