"""Every game of the referee has a complete kit in the SDK; a sentence says what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from seatwise.bot import Bot, check_bot
from seatwise.codec.wire_format import encode_field
from seatwise.errors import UsageError
from seatwise.kits import KITS, OWN_KITS
from seatwise.kits.game_kit import CasualQueue, DemoKit, GameKit, RaceMethod
from seatwise.samples import sample
from seatwise.v1.match_service_pb2 import WatchMatchResponse
from seatwise.v1.play_service_pb2 import SubmitMove, Update
from seatwise_referee.game import Game, Prompt, RaceGame, Seat
from seatwise_referee.games.registry import GAMES

PAYLOADS = ((Update, "view"), (SubmitMove, "move"), (WatchMatchResponse, "view"))
"""The messages that carry views and moves of every game, and their oneofs."""

SEED = bytes(32)


def missing_parts(games: Mapping[str, Any], kits: Mapping[str, GameKit]) -> Iterator[str]:
    """One sentence for each thing that the kits of these games lack."""
    for name, game in games.items():
        kit = kits.get(name)
        if kit is None:
            yield f"{name}: the SDK has no kit of this game; write one and add it to seatwise.kits.KITS"
        else:
            yield from (f"{name}: {fault}" for fault in faults_of_kit(game, kit))
    yield from (f"{name}: the referee has no game of this kit" for name in kits.keys() - games.keys())


def faults_of_kit(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    yield from faults_of_methods(game, kit)
    yield from faults_of_codec(game, kit)
    yield from faults_of_frames(game, kit)
    yield from faults_of_samples(kit)
    yield from faults_of_texts(game, kit)
    yield from faults_of_server_parts(game, kit)


def faults_of_texts(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    if not kit.title.strip():
        yield "it has no title for people; add one to its kit"
    state = game.deal(game.table_sizes[0], SEED, game.complete_options({}))
    seat = min(cast("Prompt", game.prompt(state)).seats)
    for name, value in (
        ("describe_view", game.view(state, None)),
        ("describe_move", game.default_move(state, seat)),
    ):
        text = getattr(kit, name)(value)
        if not isinstance(text, str) or not text.strip() or "\n" in text:
            yield f"{name} of its kit must return one line of text, not {text!r}"


def faults_of_server_parts(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    if not kit.queues:
        yield "it has no casual queue; add one to `queues` of its kit"
    for name, seats, options, free_ms, _ in kit.queues:
        if not free_ms.keys() <= game.paces.keys() or not game.complete_options(options):
            yield f"its queue {name!r} has a pace that the game has not"
        if seats not in game.table_sizes:
            yield f"its queue {name!r} has {seats} seats, and the game is not played by so many"
        other = next(
            (each.name for each in OWN_KITS for queue in each.queues if queue.name == name), game.name
        )
        if other != game.name:
            yield f"its queue {name!r} is a queue of {other}; names of queues are unique"
    if len(kit.house_bots) < game.table_sizes[-1] - 1:
        yield f"a match can lack {game.table_sizes[-1] - 1} bots, and its kit has {len(kit.house_bots)} house bots"
    used = [each.sample for each in kit.house_bots]
    used += [*(kit.demo.bots.values() if kit.demo else ()), *([kit.par_bot] if kit.par_bot else [])]
    yield from (
        f"its kit uses the sample {each!r}, which it does not have"
        for each in used
        if each not in kit.samples
    )


def faults_of_methods(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    for pace in game.paces.keys() - kit.methods.keys():
        yield f"no method answers questions of the pace {pace!r}; add one to `methods` of its kit"
    for pace, method in kit.methods.items():
        if pace not in game.paces:
            yield f"its method {method.name} answers the pace {pace!r}, which the game does not have"
        if not hasattr(Bot, method.name):
            yield f"seatwise.Bot has no method {method.name}, which answers the pace {pace!r}; add it with a docstring"
    for prompt in prompts_of(game):
        asked = kit.methods.get(prompt.pace)
        if asked is not None and isinstance(asked, RaceMethod) != prompt.race:
            told = "a RaceMethod" if prompt.race else "a TurnMethod"
            yield f"questions of the pace {prompt.pace!r} need {told} in `methods` of its kit"
            return


def faults_of_codec(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    try:
        codec = kit.load_codec()
    except (ImportError, AttributeError) as error:
        yield f"its codec cannot be loaded ({error}); write `CODEC` in the module {kit.codec_module}"
        return
    for message, oneof in PAYLOADS:
        field = message.DESCRIPTOR.fields_by_name.get(codec.field)
        if field is None or field.containing_oneof is None or field.containing_oneof.name != oneof:
            yield f"{message.DESCRIPTOR.name}.{oneof} has no field {codec.field!r}; add it to the proto"
            return
        if field.number != codec.number:
            yield f"{message.DESCRIPTOR.name}.{codec.field} has the number {field.number}, its codec {codec.number}"
    state = game.deal(game.table_sizes[0], SEED, game.complete_options({}))
    for seat in (None, Seat(0)):
        view = game.view(state, seat)
        update = Update.FromString(encode_field(codec.number, codec.encode_view(view)))
        if codec.decode_view(getattr(update, codec.field)) != view:
            yield f"the view of {'a spectator' if seat is None else 'seat 0'} changes when it is encoded and decoded"


def faults_of_frames(game: Game[Any, Any, Any], kit: GameKit) -> Iterator[str]:
    try:
        writer = kit.load_frame_writer()
    except (ImportError, AttributeError) as error:
        yield f"its frames cannot be written ({error}); write `FRAME_WRITER` in the module {kit.frames_module}"
        return
    state = game.deal(game.table_sizes[0], SEED, game.complete_options({}))
    for write, seat in ((writer.write_table, None), (writer.write_own, Seat(0))):
        try:
            json.dumps(write(game.view(state, seat)))
        except TypeError as error:
            yield f"its frames are no JSON ({error}); mend {kit.frames_module}"


def faults_of_samples(kit: GameKit) -> Iterator[str]:
    if "random" not in kit.samples:
        yield "it has no sample bot `random`; add one to `samples` of its kit"
    for name, home in kit.samples.items():
        try:
            check_bot(sample(name, kit.name) if kit is KITS.get(kit.name) else load(home), kit.name)
        except (ImportError, AttributeError, UsageError) as error:
            yield f"its sample {name!r} is no bot of the game: {error}"


def load(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(__import__(module, fromlist=[name]), name)


def prompts_of(game: Game[Any, Any, Any]) -> Iterator[Prompt]:
    """The questions of a match in which every seat lets its time run out."""
    state = game.deal(game.table_sizes[0], SEED, game.complete_options({}))
    while (prompt := game.prompt(state)) is not None:
        yield prompt
        if prompt.race:
            state = cast("RaceGame[Any, Any, Any]", game).end_round(state)
        else:
            seat = min(prompt.seats)
            state = game.play(state, seat, game.default_move(state, seat))


def test_every_game_of_the_referee_has_a_complete_kit() -> None:
    assert list(missing_parts(GAMES, KITS)) == []


# The test can fail


def test_a_game_without_a_kit_is_named() -> None:
    hearts = {**GAMES, "hearts": SimpleNamespace(name="hearts")}
    assert list(missing_parts(hearts, KITS)) == [
        "hearts: the SDK has no kit of this game; write one and add it to seatwise.kits.KITS"
    ]


UGO = KITS["ugo"]
CHOOSE, ARRANGE, BUILD = UGO.methods["card"], UGO.methods["arrange"], KITS["ubongo"].methods["build"]


@pytest.mark.parametrize(
    ("kit", "why"),
    [
        (replace(UGO, methods={"card": CHOOSE}), "no method answers questions of the pace 'arrange'"),
        (replace(UGO, methods={**UGO.methods, "pass": CHOOSE}), "the pace 'pass', which the game does not have"),
        (replace(UGO, methods={"card": replace(CHOOSE, name="play_card"), "arrange": ARRANGE}), "seatwise.Bot has no method play_card"),
        (replace(UGO, methods={"card": BUILD, "arrange": ARRANGE}), "the pace 'card' need a TurnMethod"),
        (replace(UGO, codec_module="seatwise.codec.hearts"), "write `CODEC` in the module seatwise.codec.hearts"),
        (replace(UGO, codec_module="seatwise.codec.game_codec"), "write `CODEC` in the module seatwise.codec.game_codec"),
        (replace(UGO, frames_module="seatwise.kits.hearts"), "write `FRAME_WRITER` in the module seatwise.kits.hearts"),
        (replace(UGO, samples={"greedy": UGO.samples["greedy"]}), "it has no sample bot `random`"),
        (replace(UGO, samples={"random": "seatwise.samples.hearts:Hearts"}), "its sample 'random' is no bot of the game"),
        (replace(UGO, samples={"random": KITS["ubongo"].samples["random"]}), "has no method choose"),
        (replace(UGO, queues=()), "it has no casual queue"),
        (replace(UGO, queues=(CasualQueue("casual-5", 5),)), "its queue 'casual-5' has 5 seats"),
        (replace(UGO, queues=KITS["ubongo"].queues), "its queue 'casual-ubongo' is a queue of ubongo"),
        (replace(UGO, house_bots=UGO.house_bots[:2]), "a match can lack 3 bots, and its kit has 2 house bots"),
        (replace(UGO, par_bot="clever"), "its kit uses the sample 'clever', which it does not have"),
        (replace(UGO, demo=DemoKit({"a": "clever"})), "its kit uses the sample 'clever'"),
        (replace(UGO, title=" "), "it has no title for people"),
        (replace(UGO, describe_move=lambda _: ""), "describe_move of its kit must return one line of text"),
        (replace(UGO, describe_view=repr, describe_move=lambda move: move), "describe_move of its kit"),
    ],
)  # fmt: skip
def test_a_part_that_a_kit_lacks_is_named(kit: GameKit, why: str) -> None:
    faults = list(missing_parts({"ugo": GAMES["ugo"]}, {"ugo": kit}))
    assert any(why in fault for fault in faults), faults


def test_a_race_needs_a_race_method() -> None:
    kit = replace(KITS["ubongo"], methods={"build": CHOOSE})
    faults = list(missing_parts({"ubongo": GAMES["ubongo"]}, {"ubongo": kit}))
    assert any("the pace 'build' need a RaceMethod" in fault for fault in faults), faults
