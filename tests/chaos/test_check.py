"""The checker finds what it is to find: histories and records are forged, one lie at a time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from matches.one_match import Desk, dealt
from matches.one_race import ready

from chaos.check import SLACK_MS, Check, Findings, longest_gap, wrongs_of_log
from chaos.history import Line
from seatwise.games.ubongo.v1 import ubongo_pb2
from seatwise.kits.codecs import CODECS
from seatwise_referee import record
from seatwise_referee.game import Seat
from seatwise_referee.games.ubongo import Lay
from seatwise_referee.journal import canonical_json

THOUGHT_MS = 40


class Story:
    """A match as its record tells it, and as its two bots wrote it down."""

    def __init__(self) -> None:
        self.told: dict[int, list[Line]] = {0: [], 1: []}
        self.desk = dealt(name="matches/story")
        while not self.desk.match.is_over:
            self._move(self.desk)
        self.record: dict[str, Any] = self.desk.record()
        for seat in (0, 1):
            ranks = self.record["result"]["ranks"]
            self._note(seat, what="ended", ranks=ranks, seed=self.record["seed"], void="")

    def _move(self, desk: Desk) -> None:
        seat, prompt, move = int(desk.asked), desk.prompt, desk.default_move()
        view = base64.b64encode(CODECS["ugo"].encode_view(desk.match.view_for(desk.asked))).decode()
        self._note(seat, what="shown", prompt=prompt, to_act=True, view=view)
        desk.hand()
        desk.now += THOUGHT_MS
        said = {"prompt": prompt, "request_id": f"r{prompt}", "move": desk.match.game.move_to_json(move)}
        self._note(seat, what="said", **said)
        desk.submit(move, request_id=f"r{prompt}")
        self._note(seat, what="accepted", request_id=f"r{prompt}", charged_ms=THOUGHT_MS)

    def _note(self, seat: int, **line: Any) -> None:
        at = self.desk.now / 1000
        self.told[seat].append({"at": at, "match": "matches/story", "seat": seat, "epoch": 1, **line})

    def lines(self, what: str, seat: int = 0) -> list[Line]:
        return [line for line in self.told[seat] if line["what"] == what]

    def entries(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.record["entries"] if entry["kind"] == kind]

    def findings(self, *excused: int) -> Findings:
        """What the checker says; of a forged record only the verifier complains of the chain."""
        findings = Findings()
        Check(canonical_json(self.record) + b"\n", self.told, excused, findings).run()
        findings.lost = [each for each in findings.lost if "does not verify" not in each]
        return findings


def counts(findings: Findings) -> tuple[int, int, int, int]:
    each = (findings.lost, findings.doubled, findings.contradicted, findings.wrong_flags)
    return len(each[0]), len(each[1]), len(each[2]), len(each[3])


def test_a_true_story_is_clean() -> None:
    story = Story()
    findings = story.findings()
    assert counts(findings) == (0, 0, 0, 0)
    assert findings.checked == len(story.entries("move")) >= 20
    assert findings.views == findings.checked


# Lost


def a_move_is_missing(story: Story) -> None:
    said = story.lines("said")[-1]
    said["prompt"] = 999


def an_answer_out_of_nowhere(story: Story) -> None:
    story.told[0].remove(story.lines("said")[0])


def no_result(story: Story) -> None:
    story.told[1].remove(story.lines("ended", 1)[0])


def shown_what_never_was(story: Story) -> None:
    shown = story.lines("shown")
    shown[0]["view"] = shown[1]["view"]


def shown_a_prompt_that_never_was(story: Story) -> None:
    story.lines("shown")[0]["prompt"] = 999


@pytest.mark.parametrize(
    "forge",
    [
        a_move_is_missing,
        an_answer_out_of_nowhere,
        no_result,
    ],
)
def test_a_lost_move_or_result_is_found(forge: Callable[[Story], None]) -> None:
    story = Story()
    forge(story)
    assert counts(story.findings()) == (1, 0, 0, 0)


@pytest.mark.parametrize("forge", [shown_what_never_was, shown_a_prompt_that_never_was])
def test_a_view_that_the_record_contradicts_is_found(forge: Callable[[Story], None]) -> None:
    story = Story()
    forge(story)
    assert counts(story.findings()) == (0, 0, 1, 0)


def test_a_record_with_another_move_is_found() -> None:
    story = Story()
    story.lines("said")[0]["move"] = story.lines("said")[1]["move"]
    assert counts(story.findings()) == (1, 0, 0, 0)


def test_a_record_that_does_not_verify_is_found() -> None:
    story, findings = Story(), Findings()
    story.record["chain"] = "00" * 32
    Check(record.record_line(story.record), story.told, (), findings).run()
    assert ["does not verify" in each for each in findings.lost] == [True]


# Doubled


def test_a_move_that_is_twice_in_the_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    monkeypatch.setattr(Check, "_views", lambda _: dict.fromkeys(range(1000)))
    monkeypatch.setattr(Check, "_check_shown", lambda *_: None)  # such a record cannot be replayed
    story.record["entries"].insert(-1, story.entries("move")[0])
    assert counts(story.findings()) == (0, 1, 0, 0)


def test_two_answers_to_one_prompt_are_found() -> None:
    story = Story()
    said, accepted = story.lines("said")[0], story.lines("accepted")[0]
    story.told[0] += [{**said, "request_id": "again"}, {**accepted, "request_id": "again"}]
    assert counts(story.findings()) == (0, 1, 0, 0)


def test_a_repeat_of_the_same_answer_is_none() -> None:
    story = Story()
    story.told[0] += [story.lines("said")[0], story.lines("accepted")[0]]
    assert counts(story.findings()) == (0, 0, 0, 0)


@pytest.mark.parametrize("lie", [{"ranks": [2, 2]}, {"seed": "00" * 32}, {"void": "ABORTED"}])
def test_another_result_is_found(lie: Line) -> None:
    story = Story()
    story.told[0].append({**story.lines("ended")[0], **lie})
    assert counts(story.findings()) == (0, 0, 1, 0)


# Wrong flags


BLAMES = [
    {"kind": "forfeited", "seat": 1, "ending": "TIMED_OUT"},
    {"kind": "forfeited", "seat": 1, "ending": "NEVER_SAT"},
    {"kind": "rejected", "seat": 1, "prompt": 3, "reason": "TOO_LATE"},
    {"kind": "default", "reason": "TIMED_OUT", "prompt": 3, "moves": [{"seat": 1}]},
]


@pytest.mark.parametrize("blame", BLAMES, ids=lambda blame: blame["kind"])
def test_blame_is_found_unless_the_bot_itself_was_away(
    blame: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story()
    views = Check(canonical_json(story.record) + b"\n", {}, (), Findings())._views()
    monkeypatch.setattr(Check, "_views", lambda _: views)
    story.record["entries"].insert(-1, blame)
    assert counts(story.findings()) == (0, 0, 0, 1)
    assert counts(story.findings(0)) == (0, 0, 0, 1)
    assert counts(story.findings(1)) == (0, 0, 0, 0)


def test_a_rejection_that_only_its_bot_knows_of_is_found() -> None:
    story = Story()
    story.told[1].append({**story.lines("accepted", 1)[0], "what": "rejected", "reason": "ILLEGAL"})
    assert counts(story.findings()) == (0, 0, 0, 1)
    story.told[1][-1]["reason"] = "NOT_HERE"
    assert counts(story.findings()) == (0, 0, 0, 0)


def test_a_gap_that_is_charged_is_found() -> None:
    story = Story()
    move, told = story.entries("move")[0], story.lines("accepted")[0]
    move["charged_ms"] = told["charged_ms"] = THOUGHT_MS + SLACK_MS
    assert counts(story.findings()) == (0, 0, 0, 0)
    move["charged_ms"] = told["charged_ms"] = THOUGHT_MS + SLACK_MS + 1
    assert counts(story.findings()) == (0, 0, 0, 1)
    assert counts(story.findings(0)) == (0, 0, 0, 0)


def test_a_charge_of_which_the_bot_was_told_another_is_found() -> None:
    story = Story()
    story.lines("accepted")[0]["charged_ms"] += 1
    assert counts(story.findings()) == (0, 0, 0, 1)


def test_an_answer_repeated_after_a_takeover_is_reckoned_from_its_first_time() -> None:
    story = Story()
    shown, said = story.lines("shown")[0], story.lines("said")[0]
    story.told[0] += [{**shown, "at": 60.0, "epoch": 2}, {**said, "at": 70.0}]
    move, told = story.entries("move")[0], story.lines("accepted")[0]
    move["charged_ms"] = told["charged_ms"] = 9000
    assert counts(story.findings()) == (0, 0, 0, 1)


# A race


def a_race(tells: str = "call") -> tuple[dict[str, Any], list[Line]]:
    """Its record, and what the bot of seat 0 wrote down, which called in the one round."""
    race = ready(0, 1)
    view = race.match.view_for(Seat(0))
    shown = base64.b64encode(CODECS["ubongo"].encode_view(view)).decode()
    laid = race.match.game.move_to_json(Lay(view.layout))
    race.at(200).call(0)
    race.until(99_999)
    assert race.match.is_over
    record = race.record()
    prompt = next(entry["prompt"] for entry in record["entries"] if entry["kind"] == "called")
    ranks, move = record["result"]["ranks"], {"call": True} if tells == "call" else {"stop": True}
    return record, [
        {"at": 0.0, "what": "said", "prompt": prompt, "request_id": "lay of 0", "move": laid},
        {"at": 0.1, "what": "shown", "prompt": prompt, "to_act": True, "view": shown},
        {"at": 0.2, "what": "said", "prompt": prompt, "request_id": "call of 0", "move": move},
        {"at": 0.3, "what": "accepted", "request_id": "call of 0", "charged_ms": 200},
        {"at": 0.4, "what": "ended", "ranks": ranks, "seed": record["seed"], "void": ""},
    ]


def looked_at(record: dict[str, Any], lines: list[Line]) -> Findings:
    """What the checker says; views are held against the true record."""
    findings = Findings()
    views = Check(canonical_json(a_race()[0]) + b"\n", {}, (), findings)._views()
    check = Check(canonical_json(record) + b"\n", {0: lines}, (), findings)
    check._views = lambda: views  # type: ignore[method-assign]
    check.run()
    findings.lost = [each for each in findings.lost if "does not verify" not in each]
    return findings


def shown_as(lines: list[Line], **what: Any) -> None:
    """Puts something else into the view that was shown."""
    view = CODECS["ubongo"].decode_view(ubongo_pb2.View.FromString(base64.b64decode(lines[1]["view"])))
    lines[1]["view"] = base64.b64encode(CODECS["ubongo"].encode_view(replace(view, **what))).decode()


def test_a_layout_is_on_no_record_and_all_else_that_a_builder_is_shown_is() -> None:
    record, lines = a_race()
    shown_as(lines, laid=(3, 4), offers=(Seat(1),), layout=())
    findings = looked_at(record, lines)
    assert (counts(findings), findings.views) == ((0, 0, 0, 0), 1)
    shown_as(lines, points=((10, 0),))
    assert counts(looked_at(record, lines)) == (0, 0, 1, 0)


def test_a_layout_that_its_seat_never_laid_is_found() -> None:
    record, lines = a_race()
    lines[0]["prompt"] += 1
    assert counts(looked_at(record, lines)) == (0, 0, 1, 0)


def test_a_call_that_was_acknowledged_is_in_the_record() -> None:
    findings = looked_at(*a_race())
    assert (counts(findings), findings.checked) == ((0, 0, 0, 0), 1)


def test_a_call_that_is_lost_or_another_is_found() -> None:
    record, lines = a_race()
    record["entries"] = [entry for entry in record["entries"] if entry["kind"] != "called"]
    assert counts(looked_at(record, lines)) == (1, 0, 0, 0)
    assert counts(looked_at(*a_race(tells="stop"))) == (1, 0, 0, 0)


def test_a_seat_that_is_said_to_have_given_no_sign_of_life_is_blamed() -> None:
    record, lines = a_race()
    record["entries"].insert(-1, {"kind": "agreed", "prompt": 1, "silent": [0]})
    assert counts(looked_at(record, lines)) == (0, 0, 0, 1)


# Gaps


def test_the_longest_gap_is_that_of_the_whole_table() -> None:
    told = {
        0: [{"at": at, "what": "accepted"} for at in (0.0, 1.0, 9.0)],
        1: [{"at": 4.0, "what": "shown"}, {"at": 5.0, "what": "said"}],
    }
    assert longest_gap(told, []) == 5.0
    assert longest_gap(told, [(6.0, 7.0)]) == 3.0
    assert longest_gap({}, []) == 0.0


@pytest.mark.parametrize(
    ("logged", "wrong"),
    [
        ([("matches/a", "1"), ("matches/b", "2")], ""),
        ([("matches/a", "1")], "matches/b is not in the log of leagues/l"),
        ([("matches/a", "1"), ("matches/b", "2"), ("matches/b", "2")], "logged matches/b as ['2', '2']"),
        ([("matches/a", "1"), ("matches/b", "3")], "logged matches/b as ['3'], its record has 2"),
        ([("matches/a", "1"), ("matches/b", "2"), ("matches/c", "4")], "['4'], its record has None"),
    ],
    ids=["as it should be", "lost", "doubled", "other", "void"],
)
def test_each_match_that_counts_is_in_its_log_once(logged: list[tuple[str, str]], wrong: str) -> None:
    found = wrongs_of_log("leagues/l", logged, {"matches/a": "1", "matches/b": "2"})
    assert len(found) == bool(wrong)
    assert all(wrong in each for each in found)
