"""A game's kit: all that the product needs to know of a game, as one value.

The referee, the SDK and the server read a game's properties from its kit alone. So a new game is a new kit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, cast

from seatwise.errors import BadAnswerError, UsageError
from seatwise_referee.game import Game, RaceGame
from seatwise_referee.games.registry import GAMES

if TYPE_CHECKING:
    from seatwise.codec.game_codec import GameCodec
    from seatwise.kits.frames import Frame, FrameWriter, SeatPicture


SEARCH_PACKAGE: Final = "seatwise_fast"
"""The package of the bots that search."""


@cache
def is_search_installed() -> bool:
    """Return whether the compiled rules are here, without loading them."""
    spec = find_spec(SEARCH_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return any(True for folder in folders or () for _ in Path(folder).glob("_*_rules*"))


class StepReader(Protocol):
    """Reads what a bot yields in one round of a race."""

    def read_step(self, answer: object) -> Any:
        """Return the move, or the `Thought`. Raises `BadAnswerError` for anything else."""


@dataclass(frozen=True, slots=True)
class TurnMethod:
    """A method of a bot that answers a question with one move."""

    name: str
    """The name of the method, as in "choose"."""

    read_answer: Callable[[object, Any], Any]
    """Return the move for what the method returned, and the view. Raises `BadAnswerError` if it is no legal move."""


@dataclass(frozen=True, slots=True)
class RaceMethod:
    """A method of a bot that is a generator. It answers one question, a race, with many moves."""

    name: str
    """The name of the method, as in "build"."""

    new_reader: Callable[[Any], StepReader]
    """Make the reader of the steps of one round, from its view."""

    last_move: Any
    """The move for a bot that builds no more: it agrees to end the round."""

    usage: str
    """The values that the generator must yield, for an error message."""


BotMethod: TypeAlias = TurnMethod | RaceMethod


class CasualQueue(NamedTuple):
    """A queue in which bots wait for an unrated match of the game, with its default options and limits where none are named."""

    name: str
    seats: int
    options: Mapping[str, int | str] = {}
    free_ms: Mapping[str, int] = {}
    """The free times by pace that differ from the default, in milliseconds."""
    patience_ms: int = 3000
    """After this time free seats go to house bots, if there are any for the game, in milliseconds."""


class HouseSeat(NamedTuple):
    """A house bot of the game: a sample that takes free seats."""

    bot: str
    """The name of the bot, as in "house-greedy"."""
    sample: str
    is_paced: bool = False
    """Whether it thinks as long as it declares, so that a person can play against it. It is asked last."""


@dataclass(frozen=True, slots=True)
class DemoKit:
    """The bots and limits of `seatwise demo`."""

    bots: Mapping[str, str]
    """The bots by name, each with its sample; one for each seat."""

    free_ms: Mapping[str, int] = field(default_factory=dict)
    """Shorter free times by pace, in milliseconds, where the default ones would make the demo too long."""


@dataclass(frozen=True, slots=True)
class GuestTable:
    """The match that a person plays in a browser."""

    house_bots: tuple[str, ...]
    """The names of the other bots. In a race none of them may be so quick that a person has no time to move."""

    free_ms: Mapping[str, int]
    """The free times by pace, in milliseconds: people are slower than bots."""


@dataclass(frozen=True, slots=True)
class GameKit:
    """All that the product needs to know of one game."""

    game: Game[Any, Any, Any]
    """The rules."""

    title: str
    """The name of the game for people."""

    methods: Mapping[str, BotMethod]
    """By pace, the method that answers its questions. The first one is the method that every bot must have."""

    samples: Mapping[str, str]
    """The sample bots, the weakest first: by name, the class as "module:class"."""

    queues: tuple[CasualQueue, ...]
    """The casual queues. A bot waits in the first one by default."""

    codec_module: str
    """The module whose `CODEC` is the game's codec."""

    describe_view: Callable[[Any], str]
    """Return what a spectator sees as one line of text."""

    describe_move: Callable[[Any], str]
    """Return a move as a short text."""

    viewer_script: str = ""
    """The module of `seatwise/replay/viewer` that draws the game in a browser; empty if none does."""

    is_hosted: bool = False
    """Whether the game comes from an outside package. Its code is not trusted with time or memory."""

    house_bots: tuple[HouseSeat, ...] = ()
    """The house bots, in the order in which they are asked to take seats: as many as a match can lack."""

    other_house_bots: tuple[HouseSeat, ...] = ()
    """More house bots, from which an operator may choose, the weakest first."""

    searching_samples: frozenset[str] = frozenset()
    """The samples that need `seatwise_fast`. As house bots they have a process of their own."""

    hint_bot: str = ""
    """The sample that gives hints; empty for the strongest one."""

    par_bot: str = ""
    """The sample that measures the luck of a deal; empty if none does. It makes no random choice, and never changes."""

    playouts_module: str = ""
    """The module whose `mean_playout_points` estimates what a deal is worth at each seat; empty if none does."""

    draws_module: str = ""
    """The module whose `measure_draw_luck` estimates what the draws of mixed moves brought to each seat; empty if none does."""

    demo: DemoKit | None = None
    """The bots and limits of `seatwise demo`; `None` if the game has no demo."""

    guest_table: GuestTable | None = None
    """The match that a guest of a server plays; `None` if no page can play the game."""

    draw_end: Callable[[Mapping[str, Any], int], str] | None = None
    """Draw how a match ended, from its record, as text of at most so many columns; `None` if there is nothing to draw."""

    use_deck_files: Callable[[Sequence[str], str], None] | None = None
    """Add the decks in these files to those of this process, and name the deck that is used where none is named, or "".

    `None` if the game has no decks from files.
    """

    list_moves: Callable[[Any], Mapping[str, Any]] | None = None
    """Return the legal moves of a view: by their text, what a bot's method returns. `None` if there are too many to list."""

    gifts_module: str = ""
    """The module whose `measure_gifts` judges what the moves of a recorded match gave to each seat; empty if none does."""

    frames_module: str = ""
    """The module whose `FRAME_WRITER` writes the game's positions for replays, or `HostedFrameWriter` where `is_hosted` is set."""

    @property
    def name(self) -> str:
        """The name of the game in URLs, records and the registry."""
        return self.game.name

    @property
    def casual_queue(self) -> str:
        """The queue in which a bot waits by default."""
        return self.queues[0].name

    @property
    def has_races(self) -> bool:
        """Whether bots race against each other's time, so that each needs a processor core of its own."""
        return any(isinstance(method, RaceMethod) for method in self.methods.values())

    @property
    def main_method(self) -> str:
        """The name of the method that every bot must have."""
        return next(iter(self.methods.values())).name

    @property
    def race_rules(self) -> RaceGame[Any, Any, Any]:
        """The rules of the game, for use in its races."""
        return cast("RaceGame[Any, Any, Any]", GAMES.get(self.name, self.game))

    @property
    def hint_sample(self) -> str:
        """The name of the sample that gives hints."""
        return self.hint_bot or list(self.samples)[-1]

    def find_method(self, pace: str) -> BotMethod:
        """Return the method that answers questions of this pace. Raises `BadAnswerError` if there is none."""
        method = self.methods.get(pace)
        if method is None:
            raise BadAnswerError(f"this version of seatwise cannot ask a bot for {pace!r}; a newer one may")
        return method

    def load_codec(self) -> GameCodec:
        """Return the codec of the game. A program that plays without a server never loads it, nor protobuf."""
        codec: GameCodec = import_module(self.codec_module).CODEC
        return codec

    def load_frame_writer(self) -> FrameWriter:
        """Return what writes the game's positions for replays. A program that shows no match never loads it."""
        module = import_module(self.frames_module)
        writer: FrameWriter = module.HostedFrameWriter(self.game) if self.is_hosted else module.FRAME_WRITER
        return writer

    def load_seat_drawer(self) -> Callable[[Frame, int], SeatPicture]:
        """Return what draws the cards before a seat, for pictures of positions. It needs no code of a game from outside."""
        drawer: Callable[[Frame, int], SeatPicture] = import_module(self.frames_module).draw_seat
        return drawer


def shorten(answer: object) -> str:
    """Return a short text of a bot's answer, for an error message."""
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."


SHOWN_MOVES = 60
"""The most legal moves that an error names."""


def check_text_game(kit: GameKit) -> None:
    """Raise `UsageError` if the moves of a game cannot be listed."""
    if kit.list_moves is None:
        raise UsageError(
            f"{kit.name} has too many moves to list, so no bot that answers with text can play it here; choose another game"
        )


def list_move_texts(kit: GameKit, view: Any) -> tuple[str, ...]:
    """Return the legal moves of a view by their text; none if the seat is not asked."""
    return tuple(kit.list_moves(view)) if kit.list_moves is not None else ()


def read_move_text(kit: GameKit, view: Any, text: str) -> Any:
    """Return what a bot's method returns for the text of a move. Spaces, commas and case do not matter.

    Raises `BadAnswerError` if it is no legal move. The message names the legal moves.
    """
    moves = kit.list_moves(view) if kit.list_moves is not None else {}
    wanted = _normalize_text(text)
    for each, answer in moves.items():
        if _normalize_text(each) == wanted:
            return answer
    shown = ", ".join(list(moves)[:SHOWN_MOVES]) + (", ..." if len(moves) > SHOWN_MOVES else "")
    raise BadAnswerError(
        f"{text.strip()[:60]!r} is no legal move here; the legal moves are: {shown or 'none'}"
    )


def _normalize_text(text: str) -> str:
    return " ".join(text.replace(",", " ").lower().split())


class WorkMeter(local):
    """Adds up the prices of one thread."""

    spent_us: int = 0
    """Virtual time so far, in microseconds."""


WORK: Final = WorkMeter()
"""The work of this thread."""
