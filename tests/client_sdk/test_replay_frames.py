"""The frames of a match: every position of its journal, for each viewpoint, and nothing that the viewpoint may not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from matches.one_match import Desk
from matches.race_scenes import RACES, left_race
from matches.random_matches import match
from matches.scenes import SCENES, TURNS, broke_rules, timed_out

from seatwise.errors import UsageError
from seatwise.kits import KITS
from seatwise.kits.ugo.frames import FRAME_WRITER, rebuild_kingdoms, section_scores
from seatwise.replay import ALL_OPEN, SPECTATOR, Frame, build_frames, read_replay
from seatwise.replay.frame_builder import HintSource, short_names
from seatwise_referee.game import Seat
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo import score_kingdom
from seatwise_referee.games.ugo.state import FARMER_SUPPLY
from seatwise_referee.journal import Finished
from seatwise_referee.position import first_position, position_after


def frames_of(desk: Desk, viewpoint: Any = ALL_OPEN, entries: int | None = None) -> list[Frame]:
    return build_frames(desk.setup, desk.journal[:entries], viewpoint)


def text_of(frame: Frame) -> str:
    return json.dumps(frame.to_json())


def viewpoints(desk: Desk) -> list[Any]:
    return [SPECTATOR, *range(len(desk.setup.bots))]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_match_has_a_frame_for_each_step_and_ends_with_its_result(scene: Any) -> None:
    desk = scene()
    frames = frames_of(desk)
    last = desk.journal[-1]
    assert isinstance(last, Finished)
    assert frames[0].kind == "dealt"
    assert frames[-1].kind == "finished"
    assert list(frames[-1].points) == last.outcome["points"]
    assert frames[-1].left == tuple("" if each == "COMPLETED" else each for each in last.endings)
    rounds = last.outcome["rounds"]
    assert isinstance(rounds, list)
    assert [frame.table["round"] for frame in frames if frame.kind in ("dealt", "round")] == list(
        range(1, len(rounds) + 1)
    )
    assert all(frame.says for frame in frames)
    json.dumps([frame.to_json() for frame in frames])


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_the_clocks_of_the_last_frame_are_those_of_the_position(scene: Any) -> None:
    desk = scene()
    position = first_position(desk.setup)
    charged = [0] * len(desk.setup.bots)
    for entry in desk.journal:
        position = position_after(position, entry, desk.setup, GAMES[desk.setup.game])
        written = entry.to_json()
        for each in (
            written,
            *written.get("moves", ()),
            *written.get("calls", ()),
            *written.get("asked", ()),
        ):  # type: ignore[misc]
            if "charged_ms" in each:
                charged[each["seat"]] += each["charged_ms"]  # type: ignore[index]
    for seat, times in enumerate(frames_of(desk)[-1].times):
        assert times is not None
        own = position.seats[seat]
        assert (times.bank_ms, times.strikes, times.rejections) == (own.bank_ms, own.strikes, own.rejections)
        assert times.used_ms == charged[seat]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_an_unfinished_journal_gives_the_beginning_of_the_frames(scene: Any) -> None:
    desk = scene()
    whole = {viewpoint: frames_of(desk, viewpoint) for viewpoint in (ALL_OPEN, SPECTATOR, 1)}
    for entries in range(0, len(desk.journal), 1 + len(desk.journal) // 6):
        for viewpoint, frames in whole.items():
            begun = frames_of(desk, viewpoint, entries)
            assert begun == frames[: len(begun)]


# What a viewpoint may not know


def hidden_cards(frame: Frame, viewpoint: Any) -> Iterator[str]:
    """The cards in the hands of other seats, from a frame that shows all."""
    for seat, own in enumerate(frame.own):
        if seat != viewpoint:
            yield from (card if isinstance(card, str) else card[0] for card in own["hand"])  # type: ignore[call-overload,index]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_no_frame_holds_a_card_that_its_viewpoint_may_not_know(scene: Any) -> None:
    desk = scene()
    all_open = frames_of(desk)
    for viewpoint in viewpoints(desk):
        shown = frames_of(desk, viewpoint)
        assert len(shown) == len(all_open)
        for frame, opened in zip(shown, all_open, strict=True):
            if opened.table.get("built"):  # the layouts lie open
                continue
            text = text_of(frame)
            assert not [card for card in hidden_cards(opened, viewpoint) if f'"{card}"' in text], frame.says


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_only_the_own_times_are_shown_to_a_seat(scene: Any) -> None:
    desk = scene()
    for viewpoint in viewpoints(desk):
        for frame in frames_of(desk, viewpoint):
            assert [seat for seat, times in enumerate(frame.times) if times] == [
                seat for seat in range(len(desk.setup.bots)) if seat == viewpoint
            ]
            assert all(move.charged_ms is None for move in frame.moves if move.seat != viewpoint)
            assert frame.seq is frame.at_ms is None


def test_the_layout_of_a_seat_that_left_is_secret_until_the_round_is_over() -> None:
    desk = left_race()
    kinds = [(frame.kind, frame.moves) for frame in frames_of(desk, SPECTATOR) if frame.kind == "default"]
    moves = [move.move for _, moves in kinds for move in moves]
    assert {"laid": 4} in moves
    assert not [move for move in moves if isinstance(move, dict) and "lay" in move]
    assert any("lay" in str(move.move) for frame in frames_of(desk) for move in frame.moves)


def test_the_rejections_of_others_leave_no_trace() -> None:
    desk = broke_rules()
    told = [
        json.dumps([frame.to_json() for frame in frames_of(desk, 1, entries)])
        for entries in range(len(desk.journal))
    ]
    rejected = [place for place, entry in enumerate(desk.journal) if entry.kind == "rejected"]
    assert rejected
    for place in rejected:
        assert told[place] == told[place + 1]


# What a frame says


def test_a_round_of_ugo_ends_with_what_each_section_scores() -> None:
    desk = TURNS["smooth"](3, 2)
    ends = [frame for frame in frames_of(desk) if frame.table["scores"]]
    assert [sum(scores) for scores in ends[0].table["scores"]] == ends[0].table["points"][0]
    assert len({frame.table["round"] for frame in ends}) == 2


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_tricks_of_a_round_rebuild_its_kingdoms(seats: int) -> None:
    game: Any = GAMES["ugo"]
    for seed in range(3):
        for step in match(game, seats, Random(seed)):
            view = game.view(step.after, None)
            if not view.won_cards:
                kingdoms, supply = rebuild_kingdoms(view.tricks, seats, FARMER_SUPPLY[seats])
                assert (tuple(kingdoms), supply) == (view.kingdoms, view.supply)
                assert [sum(section_scores(each)) for each in kingdoms] == list(map(score_kingdom, kingdoms))


def test_a_round_for_two_with_all_the_farmers_ends_with_what_is_left_of_them() -> None:
    game: Any = GAMES["ugo"]
    state = game.deal(2, bytes(32), {"rounds": 2, "farmers": 36})
    ends = []
    while (prompt := game.prompt(state)) is not None:
        before, (seat,) = game.view(state, None), prompt.seats
        state = game.play(state, seat, next(iter(game.legal_moves(state, seat))))
        end = FRAME_WRITER.write_round_end(before, game.view(state, None))
        ends += [end] if end else []
    left = [end["supply"] + sum(each["farmers"] for each in end["kingdoms"]) for end in ends]
    assert left == [36, 36]


def test_sentences_say_who_did_what() -> None:
    said = [frame.says for frame in frames_of(timed_out())]
    assert said[0] == "Round 1 is dealt."
    assert any(text.startswith("b1's time is over, so the referee plays for it: it plays ") for text in said)
    assert "b1 forfeits: its time ran out too often." in said
    assert any("has forfeited, so the referee plays for it" in text for text in said)
    assert any("wins the trick" in text for text in said)
    said = [frame.says for frame in frames_of(RACES["called_falsely"]())]
    assert any("The cards of b0 do not fit: it is out of this round." in text for text in said)
    assert any("Round 1 is over: b0 0, b1 0, b2 6, b3 10." in text for text in said)
    assert said[-1].startswith("The match is over, and b3 wins.")


def test_wrong_pairs_of_a_layout_are_named() -> None:
    frames = frames_of(RACES["called_falsely"]())
    [end] = [frame for frame in frames if frame.table["built"] and frame.kind == "called"]
    built = end.table["built"]
    assert [each["fits"] for each in built] == [False, False, True, True]
    assert [bool(each["wrong"]) for each in built] == [True, True, False, False]
    assert [each["called"] for each in built] == [True, True, False, True]


def test_names_are_short_and_differ() -> None:
    assert short_names(["bots/a/versions/1", "bots/b/versions/7"]) == ("a", "b")
    assert short_names(["bots/a/versions/1"] * 2) == ("a (seat 0)", "a (seat 1)")


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_frame_can_be_drawn_as_text_for_each_viewpoint(scene: Any) -> None:
    desk = scene()
    writer = KITS[desk.setup.game].load_frame_writer()
    names = short_names(desk.setup.bots)
    for viewpoint in (ALL_OPEN, 1):
        for frame in frames_of(desk, viewpoint):
            drawn = writer.draw_text(frame, names)
            assert all(name in drawn for name in names)


# Records, hints, and games that do not draw


def test_a_record_is_checked_before_it_is_shown() -> None:
    line = TURNS["smooth"]().line()
    assert read_replay(line).ranks
    with pytest.raises(UsageError, match="the record is wrong: "):
        read_replay(line.replace(b'"charged_ms":', b'"charged_ms":1', 1))
    with pytest.raises(UsageError, match="there is no seat 2: the seats are 0 to 1"):
        read_replay(line, Seat(2))


def test_a_hint_is_what_the_strongest_sample_would_play_of_what_the_seat_sees() -> None:
    desk = TURNS["smooth"]()
    hints = HintSource("ugo")
    hints.bot_name = "greedy"  # the quick one
    frames = build_frames(desk.setup, desk.journal, ALL_OPEN, hints)
    for frame, after in pairwise(frames):
        assert [seat for seat, hint in enumerate(frame.hints) if hint] == list(frame.asked)
        for seat in frame.asked:
            assert frame.hints[seat].startswith("greedy ")
            played = after.says.removeprefix(f"b{seat} ").partition(".")[0]
            assert after.is_other_than_hint == (frame.hints[seat] != f"greedy {played}")
    assert {frame.is_other_than_hint for frame in frames} == {True, False}
    assert not any("".join(frame.hints) for frame in build_frames(desk.setup, desk.journal, SPECTATOR, hints))
    for frame in build_frames(desk.setup, desk.journal, 1, hints):
        assert not frame.hints[0]


def test_a_hint_for_a_race_is_a_layout_and_what_follows() -> None:
    desk = RACES["raced"]()
    first = build_frames(desk.setup, desk.journal, 1, HintSource("ubongo"))[0]
    assert first.hints == ("", "solver lays 7 cards, and calls", "")


def test_there_is_no_hint_for_a_seat_that_has_left() -> None:
    desk = RACES["eventful_race"]()
    [first, *_] = build_frames(desk.setup, desk.journal, ALL_OPEN, HintSource("ubongo"))
    assert first.left[3]
    assert first.hints[0]
    assert not first.hints[3]


@pytest.mark.parametrize(
    ("totals", "ranks", "decisive"),
    [
        ([(0, 0), (5, 1), (5, 9), (12, 9), (20, 9)], (1, 2), 3),
        ([(0, 0), (5, 1), (5, 5), (9, 5)], (1, 2), 3),
        ([(0, 0), (5, 1)], (2, 1), 1),  # the winner is behind: the other one forfeited
        ([(0, 0), (5, 5)], (1, 1), 1),
        ([(0, 0), (5, 1)], (), 1),
    ],
)
def test_the_decisive_step_is_the_first_from_which_on_nobody_is_level_with_the_winner(
    totals: list[tuple[int, int]], ranks: tuple[int, ...], decisive: int
) -> None:
    replay = read_replay(SCENES["eventful"]().line())
    frames = tuple(replace(replay.frames[0], table={"points": [each]}) for each in totals)
    changed = replace(replay, bots=replay.bots[:2], frames=frames, ranks=ranks)
    assert changed.decisive_step == decisive


def test_a_turn_is_told_once_and_by_the_points_of_the_open_round_too() -> None:
    before = {"points": [(3, 4)], "running": (0, 0)}
    for running, said in (
        ((1, 0), ""),
        ((2, 0), "ann takes the lead."),
        ((0, 15), "bob gains 15 points at one stroke."),
        ((0, -15), "bob loses 15 points at one stroke. ann takes the lead."),
    ):
        assert FRAME_WRITER.describe_turn(before, {**before, "running": running}, ("ann", "bob")) == said
