"""`seatwise bots` at a terminal, and `seatwise match list --mine`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import House
from harness.terminal import seatwise

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def said(house: House, data: Path, *args: str, token: str = "") -> tuple[int, str, str]:
    """Exit code, standard output, standard error of a command with a data folder of its own."""
    named = ["--address", house.address, *(["--token", token] if token else [])]
    return await seatwise(*args, *named, data=data)


async def told(house: House, data: Path, *args: str) -> list[dict]:
    code, out, complained = await said(house, data, *args, "--json", token=house.admin.token)
    assert code == 0, complained
    return [json.loads(line) for line in out.splitlines()]


async def test_a_bot_is_registered_shown_rotated_and_revoked(house: House, tmp_path: Path) -> None:
    [made] = await told(house, tmp_path, "bots", "register", "desk-made", "--version", "2", "--owner", "Ann")
    assert made["name"] == "bots/desk-made/versions/2"
    assert made["token"].startswith("seatwise_")
    [again] = await told(house, tmp_path, "bots", "rotate", made["name"])
    assert again["token"] not in ("", made["token"])
    code, out, _ = await said(house, tmp_path, "bots", "show", made["name"])
    assert code == 0
    assert "owner            Ann" in out
    assert "attends          no" in out
    code, out, _ = await said(house, tmp_path, "bots", "revoke", made["name"], token=house.admin.token)
    assert (code, "is revoked" in out) == (0, True)
    [shown] = await told(house, tmp_path, "bots", "show", made["name"])
    assert shown["revoked"] is True


async def test_bots_are_listed_by_owner_and_by_attendance(house: House, tmp_path: Path) -> None:
    for name, owner in (("desk-one", "Bea"), ("desk-two", "Cy")):
        await told(house, tmp_path, "bots", "register", name, "--owner", owner)
    bot = await house.bot("desk-here")
    await bot.attend()
    attending = await told(house, tmp_path, "bots", "attending")
    assert "bots/desk-here/versions/1" in [each["name"] for each in attending]
    assert all(each["attending"] for each in attending)
    assert attending == await told(house, tmp_path, "bots", "list", "--attending")
    listed = await told(house, tmp_path, "bots", "list", "--owner", "Bea")
    assert [each["name"] for each in listed] == ["bots/desk-one/versions/1"]
    code, out, _ = await said(house, tmp_path, "bots", "list")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["bot", "owner", "registered"]
    assert "bots/desk-two/versions/1" in out


async def test_only_admins_register(house: House, tmp_path: Path) -> None:
    code, _, complained = await said(house, tmp_path, "bots", "register", "desk-none")
    assert code == 1
    assert "TOKEN_MISSING" in complained


async def test_my_matches_are_those_of_the_bots_whose_tokens_are_here(house: House, tmp_path: Path) -> None:
    for name in ("desk-mine", "desk-also", "desk-other"):
        await told(house, tmp_path, "bots", "register", name)
    made = []
    for bots in (("desk-mine", "desk-other"), ("desk-other", "desk-other"), ("desk-mine", "desk-also")):
        code, out, complained = await said(
            house, tmp_path, "match", "create", "ugo", *bots, "--json", token=house.admin.token
        )
        made.append(json.loads(out)["name"] if code == 0 else complained)
    (tmp_path / "bots").mkdir()
    for name in ("desk-mine", "desk-also"):
        (tmp_path / "bots" / f"{name}.1.token").write_text("kept")
    found = await told(house, tmp_path, "match", "list", "--mine")
    assert {each["name"] for each in found} == {made[0], made[2]}
    assert len(found) == 2


async def test_without_a_bot_of_its_own_a_machine_is_told_so(house: House, tmp_path: Path) -> None:
    code, _, complained = await said(house, tmp_path, "match", "list", "--mine")
    assert code == 2
    assert "no bot has registered itself from this machine" in complained
