"""`seatwise replay`: the text, the keys, the JSON and the page."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from matches.forging import chained, record_of
from matches.race_scenes import RACES
from matches.scenes import SCENES, TURNS

from seatwise.cli import main
from seatwise.kits.frames import arrange_blocks
from seatwise.replay import ALL_OPEN, read_replay
from seatwise.replay.frame_builder import HintSource
from seatwise.replay.page import SCRIPTS, STYLES, bundle_scripts, read_viewer_file, render_page
from seatwise.replay.text import Stepper
from seatwise_referee.record import record_line

SOON_S = 100.0


@pytest.fixture(scope="module")
def line() -> bytes:
    found: bytes = TURNS["smooth"](3, 2).line()
    return found


@pytest.fixture
def file(tmp_path: Path, line: bytes) -> str:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    return str(path)


def told_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["replay", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["replay", *arguments]) == 2
    return capsys.readouterr().err


# Text and JSON


def test_without_a_terminal_there_is_a_line_for_each_step_and_the_last_position(
    capsys: pytest.CaptureFixture[str], file: str, line: bytes
) -> None:
    lines = told_by(capsys, file).splitlines()
    frames = read_replay(line).frames
    assert lines[0].split(maxsplit=1) == ["0", "Round 1 is dealt."]
    assert lines[1].split(maxsplit=3) == ["1", "0", "ms", frames[1].says]
    assert f"step {len(frames) - 1} of {len(frames) - 1}" in lines[len(frames) + 1]
    assert any("thought" in text and "bank" in text for text in lines)


def test_a_seat_is_shown_its_own_hand_only(
    capsys: pytest.CaptureFixture[str], file: str, line: bytes
) -> None:
    hands: Any = [own["hand"] for own in read_replay(line).frames[0].own]  # type: ignore[index,call-overload]
    for seat in ("1", "b1"):
        text = told_by(capsys, file, "--at", "0", "--seat", seat)
        assert " ".join(hands[1]) in text
        assert not [card for card in (*hands[0], *hands[2]) if re.search(rf"\b{card}\b", text)]
        assert "seen from seat 1 (b1)" in text
    assert all(" ".join(hand) in told_by(capsys, file, "--at", "0") for hand in hands)


def test_json_has_the_frames(capsys: pytest.CaptureFixture[str], file: str, line: bytes) -> None:
    told = json.loads(told_by(capsys, file, "--json"))
    assert told == json.loads(json.dumps(read_replay(line).to_json()))
    one = json.loads(told_by(capsys, file, "--json", "--at", "3", "--seat", "0"))
    assert [frame["says"] for frame in one["frames"]] == [told["frames"][3]["says"]]
    assert one["frames"][0]["own"][1] is None


def test_with_hints_moves_that_are_no_hint_are_marked(
    capsys: pytest.CaptureFixture[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose_greedy(self: HintSource, game: str) -> None:
        make_source(self, game)
        self.bot_name = "greedy"  # the quick one

    make_source = HintSource.__init__
    monkeypatch.setattr(HintSource, "__init__", choose_greedy)
    lines = told_by(capsys, file, "--hint").splitlines()
    assert lines[0].endswith("]")
    assert "[for b0: greedy plays " in lines[0]
    assert any(text[4:5] == "*" for text in lines)
    assert any(text[4:5] == " " for text in lines[1:40])
    assert "Hint: for b0: greedy plays " in told_by(capsys, file, "--hint", "--at", "0")


def test_a_match_is_named_among_several(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: bytes
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line.replace(b"matches/test", b"matches/other") + RACES["raced"]().line())
    assert "Ubongo" in told_by(capsys, str(path), "te", "--at", "0")
    assert "Ubongo" in told_by(capsys, str(path), "matches/test", "--at", "0")
    assert f"Name one, as in: seatwise replay {path} other. There are other, test" in refused(
        capsys, str(path)
    )
    assert "no match whose name begins with nope" in refused(capsys, str(path), "nope")


def test_options_may_come_between_file_and_match(
    capsys: pytest.CaptureFixture[str], file: str, line: bytes
) -> None:
    match = json.loads(line)["match"]
    assert told_by(capsys, file, "--at", "1", match, "--json") == told_by(
        capsys, "--json", file, match, "--at", "1"
    )


def test_standard_input_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert "Round 1 is dealt." in told_by(capsys, "-")


def test_a_season_bundle_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "season.bundle"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("records.jsonl", line)
    assert "Round 1 is dealt." in told_by(capsys, str(path))


def test_every_error_says_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, line: bytes
) -> None:
    assert "name a file of records" in refused(capsys, str(tmp_path / "none"))
    assert "the seats are 0 (b0), 1 (b1), 2 (b2)" in refused(capsys, file, "--seat", "carl")
    assert "the match has the steps 0 to" in refused(capsys, file, "--at", "9999")
    assert "cannot write" in refused(capsys, file, "--html", str(tmp_path))
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_bytes(line.replace(b'"charged_ms":0', b'"charged_ms":4', 1))
    assert "the record is wrong: seq " in refused(capsys, str(wrong))
    for name, text in (("empty", b""), ("other", b"no record\n"), ("broken", b"PK\x03\x04")):
        (tmp_path / name).write_bytes(text)
        assert str(tmp_path / name) in refused(capsys, str(tmp_path / name))


def test_a_forged_name_cannot_write_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    body: Any = record_of("smooth")
    body["seats"][0]["bot"] = "bots/\x1b[2J\u202eann\n/versions/1"
    body["match"] = "matches/m1"
    path = tmp_path / "records.jsonl"
    path.write_bytes(record_line(chained(body)))
    for arguments in ((), ("--at", "3"), ("--json",), ("--seat", "0")):
        told = told_by(capsys, str(path), *arguments)
        assert "ann" in told
        assert not [letter for letter in told if not letter.isprintable() and letter != "\n"]
    stepper = stepper_for(path.read_bytes())
    assert "\x1b" not in stepper.draw_screen(100, 50)
    assert "\x1b" not in refused(capsys, str(path), "--seat", "9")


def test_a_long_file_is_not_read_to_its_end_to_ask_which_match(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: bytes
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(line.replace(b"matches/test", f"matches/m{n}".encode()) for n in range(30)))
    assert "m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ..." in refused(capsys, str(path))
    assert "matches/" not in refused(capsys, str(path), "m7x")


# Keys


def stepper_for(line: bytes, step: int = 0) -> Stepper:
    return Stepper(lambda viewpoint: read_replay(line, viewpoint), ALL_OPEN, step)


def test_keys_step_jump_and_change_the_viewpoint(line: bytes) -> None:
    frames = read_replay(line).frames
    stepper, last = stepper_for(line), len(frames) - 1
    second = next(step for step, frame in enumerate(frames) if frame.kind == "round")
    for key, step in ((b"\x1b[C", 1), (b" ", 2), (b"\x1b[D", 1), (b"\x1b[6~", second), (b"\x1b[5~", 0),
                      (b"\x1b[F", last), (b"n", last), (b"\x1b[H", 0), (b"p", 0), (b"?", 0)):  # fmt: skip
        assert stepper.press_key(key)
        assert f"step {step} of {last}" in stepper.draw_screen(100, 60)
    for key, seen in (
        (b"2", "seen from seat 2 (b2)"),
        (b"7", "seen from seat 2"),
        (b"s", "seen by a spectator"),
        (b"a", "all hands open"),
    ):
        assert stepper.press_key(key)
        assert seen in stepper.draw_screen(100, 60)
    assert not stepper.press_key(b"q")


def test_a_screen_is_never_larger_than_the_terminal(line: bytes) -> None:
    for columns, lines in ((80, 24), (20, 5), (200, 80)):
        drawn = stepper_for(line, 9).draw_screen(columns, lines).splitlines()
        assert len(drawn) <= lines
        assert max(map(len, drawn)) <= columns


def test_blocks_lie_side_by_side_where_there_is_room() -> None:
    assert arrange_blocks("head\n\na\nb\n\nc", 9) == "head\n\na   c\nb"
    assert arrange_blocks("head\n\na\nb\n\nc", 4) == "head\n\na\nb\n\nc"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo-terminals")
def test_a_real_terminal_is_stepped_through_and_left_as_it_was(file: str) -> None:
    import termios

    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "seatwise", "replay", file], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "COLUMNS": "100", "LINES": "40"},
    )  # fmt: skip
    try:
        wait_for(ours, "step 0 of")
        os.write(ours, b"\x1b[C")
        wait_for(ours, "step 1 of")
        os.write(ours, b"q")
        assert process.wait(SOON_S) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def wait_for(terminal: int, text: str) -> None:
    seen, deadline = "", time.monotonic() + SOON_S
    while text not in seen:
        assert time.monotonic() < deadline, seen
        seen += os.read(terminal, 65536).decode(errors="replace")


# The page


def page_of(scene: Any) -> str:
    return render_page(read_replay(scene().line()))


def element_of(page: str, start: str, name: str) -> str:
    _, _, rest = page.partition(start)
    return rest.partition(f"</{name}>")[0]


def test_the_page_is_one_file_with_a_strict_policy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, line: bytes
) -> None:
    out = tmp_path / "match.html"
    middle = (len(read_replay(line).frames) - 1) // 2
    assert f"{out}#step={middle} is a moment" in told_by(capsys, file, "--html", str(out))
    page = out.read_text(encoding="utf-8")
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert "unsafe" not in policy
    for start, name in (('<script type="module">', "script"), ("<style>", "style")):
        digest = b64encode(sha256(element_of(page, start, name).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert page.count("<script") == 2
    assert page.count("<style") == 1
    assert not re.findall(
        r"""(?:src|href)=|url\(|@import|style=|\bon\w+=|https?://(?!www\.w3\.org/2000/svg)""", page
    )
    data = json.loads(element_of(page, '<script type="application/json" id="replay">', "script"))
    assert data == json.loads(json.dumps(read_replay(line).to_json()))


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_without_scripts_the_page_tells_result_and_steps(scene: Any) -> None:
    page = page_of(scene)
    [told] = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    replay = read_replay(scene().line())
    assert told.count("<li>") == len(replay.frames)
    assert all(f'<th scope="row">{name}</th>' in page for name in replay.names)


def test_a_text_of_the_match_cannot_become_markup() -> None:
    from dataclasses import replace

    replay = replace(
        read_replay(TURNS["smooth"]().line()), bots=("bots/<script>alert(1)</script>", "bots/&amp;\"'")
    )
    page = render_page(replay)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "&amp;amp;" in page


def test_the_viewer_writes_no_markup_and_no_style() -> None:
    code = "".join(map(read_viewer_file, SCRIPTS))
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\.style\b|new Function", code
    )
    assert not re.findall(r"^(?:import|export) ", bundle_scripts(), re.MULTILINE)
    assert sum(len(read_viewer_file(name)) for name in (*SCRIPTS, *STYLES)) < 54_000


# Drawings, in Node


DRAW_ALL = """
import { toMarkup } from "./shapes.js";
import { UGO } from "./ugo.js";
import { UBONGO } from "./ubongo.js";
const replays = JSON.parse(await new Response(process.stdin).text());
const drawn = replays.map(({ game, names, frames }) => {
  const drawing = { ugo: UGO, ubongo: UBONGO }[game];
  return frames.map((frame, step) => [
    toMarkup(drawing.drawTable(frame, names, frames.slice(0, step + 1))),
    ...names.map((name, seat) => toMarkup(drawing.drawSeat(frame, seat, name))),
    drawing.describeFacts(frame),
  ]);
});
console.log(JSON.stringify(drawn));
"""


@pytest.mark.skipif(not which("node"), reason="needs Node to run the viewer's drawings")
def test_every_frame_of_every_viewpoint_is_drawn(tmp_path: Path) -> None:
    for name in SCRIPTS:
        (tmp_path / name).write_text(read_viewer_file(name), encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "draw_all.js").write_text(DRAW_ALL, encoding="utf-8")
    replays = [
        read_replay(scene().line(), viewpoint).to_json()
        for name, scene in SCENES.items()
        for viewpoint in ((ALL_OPEN, 0) if name in RACES else (ALL_OPEN,))
    ]
    ran = subprocess.run(
        ["node", str(tmp_path / "draw_all.js")], input=json.dumps(replays), capture_output=True, text=True,
        timeout=SOON_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for replay, drawn in zip(replays, json.loads(ran.stdout), strict=True):
        assert len(drawn) == len(replay["frames"])
        for frame, pictures in zip(replay["frames"], drawn, strict=True):
            assert not re.findall(r"NaN|undefined|Infinity|\[object", json.dumps(pictures)), frame["says"]
            for picture in pictures[:-1]:
                assert picture.startswith('<svg viewBox="0 0 ')
