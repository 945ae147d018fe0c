"""The process that shows games from outside: it hangs and ends for itself alone, and a game is then shown without its hooks, or not."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from hosted.packages import install_package, run_seatwise

from seatwise_server.play import game_views
from seatwise_server.play.game_views import GameViews, ViewsFailed

pytestmark = pytest.mark.timeout(200)

SOURCE = """
import os, time
from seatwise.hosting import HostedGame

class Nice(HostedGame):
    name = "nice"
    def start_match(self, seats, options, chance): return ()
    def find_turn(self, state): return None if len(state) == 4 else len(state) % 2
    def list_moves(self, state): return ["a", "b"]
    def play_move(self, state, move, chance): return (*state, move)
    def show_state(self, state, seat): return {"moves": list(state)}
    def count_points(self, state): return [state.count("a"), state.count("b")]
    def draw(self, view, seat): return [{"text": "drawn"}]

class Hangs(Nice):
    name = "hangs"
    def draw(self, view, seat):
        while True: time.sleep(1)

class Ends(Nice):
    name = "ends"
    def narrate(self, before, move, mover, after): os._exit(3)

class Broken(Nice):
    name = "broken"
    def show_state(self, state, seat):
        if "SHOWN" in os.environ: os._exit(3)
        return super().show_state(state, seat)

def games(): return [Nice, Hangs, Ends, Broken]
"""


@pytest.mark.slow
def test_a_game_that_stops_the_process_is_shown_without_its_hooks_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, "some_games", SOURCE, "some = some_games:games")
    records = {}
    for game in ("nice", "hangs", "ends", "broken"):
        out = f"{game}.jsonl"
        run_seatwise(tmp_path, "play", game, "random", "random", "--matches", "1", "--records", out)
        records[game] = (tmp_path / out).read_text()
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("SHOWN", "1")
    monkeypatch.setattr(game_views, "ANSWER_S", 3.0)
    monkeypatch.setattr(game_views, "FIRST_ANSWER_S", 30.0)

    async def show() -> None:
        views = GameViews()
        for game, first in (("nice", "text"), ("hangs", "zone"), ("ends", "zone"), ("nice", "text")):
            replay, text = await views.make_replay(game, records[game])
            frames = json.loads(replay)["frames"]
            assert first in frames[-1]["table"]["drawing"][0]
            assert (text == "drawn\n\n  random\n\n  random-2") is (game == "nice")
        with pytest.raises(ViewsFailed):
            await views.make_replay("broken", records["broken"])
        assert (await views.make_replay("nice", records["nice"]))[0]
        assert not await views.may_show_live("nice")  # it has no `resample_state`
        await views._end_worker()

    asyncio.run(show())
