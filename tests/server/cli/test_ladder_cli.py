"""`seatwise ladder` at a terminal, and the demo, which plays on one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from harness import House
from harness.ladder import Rung, played_with_a_friend, players
from harness.terminal import seatwise

from seatwise.client import AsyncClient
from seatwise_referee.ending import Ending
from seatwise_referee.verify import verify_lines
from seatwise_server.cli.ladder import _append_record, _open_records
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.standings.ranking import format_ranges
from seatwise_server.store.keys import ladder_settings

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ladder(house: House, *args: str, token: str = "") -> tuple[int, str, str]:
    """`seatwise ladder`; without a token as anybody."""
    named = ["--token", token] if token else []
    return await seatwise("ladder", *args, "--address", house.address, *named)


async def lines(house: House, *args: str) -> list[dict]:
    code, out, complained = await ladder(house, *args)
    assert code == 0, complained
    return [json.loads(line) for line in out.splitlines()]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(module_house: House) -> Rung:
    """A ladder on which three have played."""
    it = Rung(module_house, "ladders/shown")
    await it.create(2)
    async with players(module_house, it.name, 3):
        await it.until_results(6)
    results = await it.results()
    await it.standings(len(results))
    return it


async def test_a_ladder_is_created_from_the_terminal_by_an_admin(house: House) -> None:
    args = ("create", "made", "--seats", "3", "--option", "rounds=2", "--free-ms", "900", "--bank-ms", "70")
    code, out, _ = await ladder(house, *args, token=house.admin.token)
    assert code == 0
    assert "--queue ladders/made" in out
    [found] = [each for each in await lines(house, "list", "--json") if each["name"] == "ladders/made"]
    assert (found["game"], found["seats"], found["options"]) == ("games/ugo", 3, {"rounds": "2"})
    assert found["time_control"]["free_ms"] == {"card": 900, "arrange": 900}
    assert found["time_control"]["bank_ms"] == 70
    bot = await house.bot()
    code, _, complained = await ladder(house, *args, token=bot.token)
    assert code == 1
    assert "admin" in complained


async def test_wrong_usage_is_said(house: House) -> None:
    code, _, complained = await ladder(house, "create", "x", "--option", "rounds", token=house.admin.token)
    assert (code, "rounds=1" in complained) == (2, True)
    code, _, complained = await ladder(house, "show", "none")
    assert (code, "ladders/none" in complained) == (1, True)


async def test_everybody_sees_where_everybody_stands(played: Rung) -> None:
    code, out, _ = await ladder(played.house, "show", "shown")
    assert code == 0
    header, *rest = out.splitlines()
    assert header.split() == ["bot", "#", "matches", "rating", "strength", "(95", "%)", "like"]
    assert "do not distinguish" in out
    standings = await played.standings()
    for line, each in zip(rest, standings, strict=False):
        assert line.split()[:3] == [each.bot.split("/")[1] + ":1", str(each.place), str(each.matches)]
        assert (line.split()[-1] == "?") is each.provisional
    told = await lines(played.house, "show", "shown", "--json")
    assert [each["bot"] for each in told] == [each.bot for each in standings]
    assert all(each["low"] < each["strength"] < each["high"] for each in told), told


async def test_the_table_is_worked_out_again_to_the_last_digit(played: Rung) -> None:
    code, out, _ = await ladder(played.house, "show", "shown", "--recompute")
    assert code == 0
    assert "every rating is the same to the last digit" in out


async def test_a_table_that_is_not_what_the_results_give_is_found_out(played: Rung) -> None:
    store = played.house.server.store
    shown = await store.ladders.read_table(played.name)
    assert shown
    table = json.loads(shown.table)
    table[1]["mu"] += 1e-13
    for _ in range(5):  # the lobby may just publish the table once more
        await store.ladders.publish_table(played.name, shown.results, json.dumps(table).encode())
        code, out, _ = await ladder(played.house, "show", "shown", "--recompute")
        if code:
            break
    await store.ladders.publish_table(played.name, shown.results, shown.table)
    assert code == 1
    assert table[1]["bot"] in out


async def test_results_are_exported_as_they_count(played: Rung) -> None:
    exported = [LoggedResult.from_json(each) for each in await lines(played.house, "export", "ladders/shown")]
    assert exported == await played.results()


async def test_records_are_exported_once_each_and_an_export_is_continued(
    played: Rung, tmp_path: Path
) -> None:
    file, results = tmp_path / "records.jsonl", await played.results()
    code, out, complained = await ladder(played.house, "export", "shown", "--records", str(file))
    assert (code, f"{len(results)} records added" in out, "records" in complained) == (0, True, True)
    whole = file.read_bytes()
    assert [json.loads(line)["match"] for line in whole.splitlines()] == [each.match for each in results]
    assert [verdict.fault for verdict in verify_lines(whole.splitlines())] == [None] * len(results)
    file.write_bytes(whole[: len(whole) // 2])  # in the middle of a line
    code, out, _ = await ladder(played.house, "export", "shown", "--records", str(file))
    assert (code, file.read_bytes(), " 0 records" in out) == (0, whole, False)
    code, out, _ = await ladder(
        played.house, "export", "shown", "--since", "2099-01-01", "--records", str(file)
    )
    assert (code, "0 records added, 0 were there" in out) == (0, True)
    code, _, complained = await ladder(
        played.house, "export", "shown", "--records", str(tmp_path / "no" / "x")
    )
    assert (code, "--records" in complained) == (2, True)


@pytest.mark.parametrize(
    "text", ["one line without its end", '{"a": 1}', '{"match": "x"}\n', "-----BEGIN CERTIFICATE-----\n"]
)
async def test_a_file_of_something_else_is_not_continued_as_an_export(
    played: Rung, tmp_path: Path, text: str
) -> None:
    (tmp_path / "mine").write_text(text)
    code, _, complained = await ladder(played.house, "export", "shown", "--records", str(tmp_path / "mine"))
    assert (code, "something else than records" in complained) == (2, True)
    assert (tmp_path / "mine").read_text() == text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
async def test_a_full_disk_ends_an_export_and_another_fault_is_not_blamed_on_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="'/dev/full'"), _open_records("/dev/full") as file:
        _append_record(file, "{}")
    with pytest.raises(TimeoutError, match="the link"), _open_records(str(tmp_path / "r")) as file:
        raise TimeoutError("the link")


async def test_a_record_that_cannot_be_had_is_counted(played: Rung, tmp_path: Path) -> None:
    gone = LoggedResult(0, "matches/gone", ("bots/a/versions/1", "bots/b/versions/1"), (1, 0), (1, 2),
                        (Ending.COMPLETED,) * 2)  # fmt: skip
    await Rung(played.house, "ladders/gone").create(2)
    await played.house.server.store.results.append_result("ladders/gone", gone)
    code, out, _ = await ladder(played.house, "export", "gone", "--records", str(tmp_path / "r"))
    assert (code, "1 cannot be had (NOT_FOUND)" in out) == (1, True)


async def test_the_checks_of_a_ladder_name_a_pair_that_helps_each_other(module_house: House) -> None:
    await played_with_a_friend(module_house, "ladders/friends")
    code, out, complained = await ladder(module_house, "checks", "friends")
    assert code == 0, complained
    assert "bots/b0/versions/1 gains" in out
    [told] = await lines(module_house, "checks", "friends", "--json")
    assert (told["favours"][0]["taker"], told["favours"][0]["giver"]) == (
        "bots/b0/versions/1",
        "bots/b1/versions/1",
    )


async def test_the_final_table_of_a_closed_ladder_is_computed_again(module_house: House) -> None:
    rung, token = await played_with_a_friend(module_house, "ladders/over"), module_house.admin.token
    code, out, _ = await ladder(module_house, "close", "over", token=token)
    assert (code, "final table" in out) == (0, True)
    await rung.standings(240)
    code, out, complained = await ladder(module_house, "show", "over", "--recompute")
    assert (code, "its final table: every strength and every place" in out) == (0, True), out + complained
    store = module_house.server.store
    for field in ("strength", "provisional"):  # nothing but the table itself can be wrong
        shown = await store.ladders.read_table(rung.name)
        assert shown
        table = json.loads(shown.table)
        table[1][field] = table[1][field] + 1e-9 if field == "strength" else not table[1][field]
        wrong = {"table": json.dumps(table), "table_number": shown.number + 1}
        for key, value in wrong.items():
            await store.client.call("HSET", ladder_settings(rung.name), key, value)
        code, out, _ = await ladder(module_house, "show", "over", "--recompute")
        assert (code, f"first difference is {table[1]['bot']}" in out) == (1, True)
    code, out, complained = await ladder(module_house, "create", "over-2", "--follows", "over", token=token)
    assert code == 0, complained
    [made] = [
        each for each in await lines(module_house, "list", "--json") if each["name"] == "ladders/over-2"
    ]
    assert (made["season"], made["options"], made["seats"]) == (2, {"rounds": "1"}, 2)
    code, _, complained = await ladder(
        module_house, "create", "x", "--follows", "over", "--seats", "3", token=token
    )
    assert (code, "leave the others out" in complained) == (2, True)


async def test_the_last_results_are_shown_and_those_of_one_bot(played: Rung) -> None:
    results = await played.results()
    told = await lines(played.house, "history", "shown", "--count", "3", "--json")
    assert [each["match"] for each in told] == [each.match for each in reversed(results)][:3]
    bot = results[-1].bots[0]
    for name in (bot, bot.split("/")[1]):
        told = await lines(played.house, "history", "shown", "--bot", name, "--count", "99", "--json")
        assert [each["match"] for each in told] == [
            each.match for each in reversed(results) if bot in each.bots
        ]
    code, out, _ = await ladder(played.house, "history", "shown")
    assert code == 0
    assert results[-1].match in out


async def test_a_bot_is_reinstated_from_the_terminal(played: Rung) -> None:
    bot = (await played.results())[0].bots[0].split("/")[1]
    code, out, _ = await ladder(played.house, "reinstate", "shown", bot, token=played.house.admin.token)
    assert (code, bot in out) == (0, True)
    code, _, complained = await ladder(played.house, "reinstate", "shown", bot)
    assert (code, "TOKEN" in complained or "token" in complained) == (1, True)


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([1, 2, 3, 5, 8, 9], "1-3, 5, 8-9")])
async def test_places_are_named_in_ranges(numbers: list[int], text: str) -> None:
    assert format_ranges(numbers) == text


async def test_a_program_reads_the_same(played: Rung) -> None:
    async with AsyncClient(played.house.address, played.house.admin.token) as client:
        results = await played.results()
        assert (await client.get_ladder(played.name)).results == len(results)
        assert (await client.list_standings(played.name)).standings == await played.standings()
        page = await client.list_ladder_results(played.name, page_size=2, newest_first=True)
        assert [each.match for each in page.results] == [each.match for each in results[:-3:-1]]
        page = await client.list_ladder_results(
            played.name, page_token=page.next_page_token, newest_first=True
        )
        assert page.results[0].match == results[-3].match
        ladder = await client.get_ladder(played.name)
        assert await client.create_ladder(ladder) == ladder
        await client.reinstate_bot(played.name, results[0].bots[0])


@pytest.mark.slow
@pytest.mark.parametrize("game", ["ugo", "ubongo"])
async def test_the_demo_is_a_ladder(tmp_path: Path, game: str) -> None:
    file = tmp_path / "records.jsonl"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seatwise", "demo", "--game", game, "--matches", "3", "--json", "--records", str(file),
        stdout=pipe, stderr=pipe,
    )  # fmt: skip
    async with asyncio.timeout(120):
        out, complained = await process.communicate()
    assert process.returncode == 0, complained
    told = json.loads(out.splitlines()[-1])
    assert told["matches"] >= 3
    assert len(told["ladder"]) == 4
    assert sum(each["matches"] for each in told["ladder"]) == 4 * told["matches"]
    verdicts = list(verify_lines(file.read_bytes().splitlines()))
    assert [verdict.fault for verdict in verdicts] == [None] * told["matches"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_demo_that_is_ended_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seatwise", "demo", "--keep", "--matches", "1", "--records", str(tmp_path / "r"),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert process.stderr
    async with asyncio.timeout(120):
        while b"The server stays up" not in await process.stderr.readline():
            pass
        assert running_in(tmp_path)
        process.send_signal(number)
        await process.communicate()
        while running_in(tmp_path):  # noqa: ASYNC110  # only the system knows
            await asyncio.sleep(0.1)


def running_in(folder: Path) -> list[str]:
    """The command lines of all processes that name this folder, without the demo itself."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if str(folder) in line and " demo " not in line]
