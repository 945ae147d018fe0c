"""Looking after a server from the terminal: what is shown is so, and what is ordered happens."""

from __future__ import annotations

import asyncio
import signal

import pytest
import pytest_asyncio
from harness import SOON_S, fleet, plays_on, until
from harness.terminal import ctl, seatwise, told

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ships():
    async with fleet(referees=2) as (processes, house):
        yield processes, house


async def referee_states(house) -> dict[str, str]:
    """Of each referee, by its address, as of its last heartbeat."""
    return {each["address"]: each["state"] for each in await told(house, "referees")}


async def test_referees_are_shown_with_what_they_have_and_what_fits(ships):
    processes, house = ships
    seats = await processes.seated(house)
    await asyncio.sleep(1.1)  # a heartbeat tells it
    shown = {each["address"]: each for each in await told(house, "referees")}
    assert shown.keys() == {process.address for process in processes.processes[1:]}
    assert {each["state"] for each in shown.values()} == {"STATE_SERVING"}
    assert (shown[seats.address]["matches"], sum(each["matches"] for each in shown.values())) == (1, 1)
    assert all(int(each["silent_ms"]) < 2500 for each in shown.values())
    [live] = await told(house, "matches")
    assert (live["match"], live["referee"], live["epoch"]) == (
        seats.match.name, shown[seats.address]["name"], "1",
    )  # fmt: skip
    leases = await told(house, "leases")
    assert sorted(
        f"referees/{each['holder']}".replace("referees/referees/", "referees/") for each in leases
    ) == (sorted(each["name"] for each in shown.values()))
    assert all(0 < int(each["left_ms"]) <= 5000 for each in leases)
    await plays_on(house, seats.table)


async def test_a_terminal_gets_a_table(ships):
    _, house = ships
    code, said, _ = await ctl(house, "referees")
    assert code == 0
    assert said.splitlines()[0].split() == ["referee", "address", "state", "matches", "free", "silent", "s"]
    assert len(said.splitlines()) == 3
    _, said, _ = await ctl(house, "matches")
    assert said == "There are none.\n"


async def test_a_match_is_voided_with_what_the_operator_says(ships):
    processes, house = ships
    seats = await processes.seated(house)
    code, said, _ = await ctl(house, "void", seats.match.name, "--reason", "the hall is on fire")
    assert (code, said) == (0, f"{seats.match.name} will end: the hall is on fire\n")
    match = await house.admin.over(seats.match.name)
    assert (match.void_reason, match.void_message) == ("ABORTED", "the hall is on fire")
    _, said, _ = await ctl(house, "void", seats.match.name, "--reason", "again")
    assert said == f"{seats.match.name} was already over\n"
    assert (await house.admin.match(seats.match.name)).void_message == "the hall is on fire"


async def test_a_drained_referee_finishes_what_it_has_and_takes_no_more(ships):
    processes, house = ships
    seats = await processes.seated(house)
    [name] = [each["name"] for each in await told(house, "referees") if each["address"] == seats.address]
    code, said, _ = await ctl(house, "drain", name)
    assert (code, said.startswith(f"{name} takes no new matches")) == (0, True)
    await until(
        lambda: [line for line in processes.at(seats.address).log if line["event"] == "order_executed"]
    )
    others = [await processes.seated(house) for _ in range(3)]
    assert seats.address not in {each.address for each in others}
    await asyncio.gather(*[plays_on(house, each.table) for each in (seats, *others)])
    async with asyncio.timeout(SOON_S):
        while (states := await referee_states(house))[seats.address] != "STATE_DRAINING":  # noqa: ASYNC110  # in another process
            await asyncio.sleep(0.1)
    assert sorted(states.values()) == ["STATE_DRAINING", "STATE_SERVING"]
    processes.at(seats.address).signal(signal.SIGTERM)
    await processes.at(seats.address).ended()
    code, _, complained = await ctl(house, "drain", name)
    assert (code, "NOT_FOUND" in complained) == (1, True)


async def health(address: str, *args: str) -> tuple[int, str]:
    """The exit code of `seatwise ctl health`, and all that it said."""
    code, said, complained = await seatwise("ctl", "health", "--address", address, *args)
    return code, (said + complained).strip()


async def test_a_probe_is_told_who_is_ready_without_a_token(ships):
    _, house = ships
    assert await health(house.address) == (0, "SERVING")
    assert await health(house.address, "--service", "seatwise.v1.LobbyService") == (0, "SERVING")
    code, said = await health(house.address, "--service", "seatwise.v1.PlayService")
    assert (code, said.endswith("there is no service 'seatwise.v1.PlayService' [NOT_FOUND]")) == (1, True)


async def test_a_bot_is_deleted(ships):
    _, house = ships
    bot, other = await house.bot(), await house.bot()
    await house.admin.create([bot.bot, other.bot])
    code, said, _ = await ctl(house, "delete-bot", bot.bot)
    assert (code, said) == (0, f"{bot.bot} is deleted; 1 created match that waited for it ended as ABORTED\n")
    assert (await bot.attending().end()).reason == "TOKEN_REVOKED"


async def test_a_server_that_does_not_answer_is_not_ready():
    code, said = await health("127.0.0.1:1")
    assert (code, said) == (1, "no answer from 127.0.0.1:1: cannot connect")


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("drain", "nobody"), "NOT_FOUND"),
        (("void", "matches/none", "--reason", "why not"), "NOT_FOUND"),
        (("void", "matches/none", "--reason", " "), "INVALID_ARGUMENT"),
        (("delete-bot", "bots/nobody/versions/1"), "NOT_FOUND"),
    ],
)
async def test_arguments_without_sense_are_refused(ships, args, reason):
    code, _, complained = await ctl(ships[1], *args)
    assert (code, reason in complained) == (1, True)


async def test_a_bot_may_look_after_nothing(ships):
    _, house = ships
    bot = await house.bot()
    verbs = ("referees",), ("drain", "x")  # test_token_doors.py has all methods
    for code, _, complained in await asyncio.gather(*[ctl(house, *args, token=bot.token) for args in verbs]):
        assert (code, "NOT_ALLOWED" in complained) == (1, True)
