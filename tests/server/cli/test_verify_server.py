"""`seatwise verify --server`: a record that is right in itself must also be the one that was published."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from matches.example_record import FILE

from seatwise.cli import main

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def verified(file: Path, address: str) -> int:
    """As from a shell: in a thread of its own, beside the server's loop."""
    return await asyncio.to_thread(main, ["verify", str(file), "--server", address])


async def test_a_record_from_the_server_is_the_one_that_it_published(house, tmp_path):
    async with house.table(2) as table:
        await table.sit()
        await table.play_out()
        await house.admin.over(table.name)
        file = tmp_path / "record.jsonl"
        file.write_bytes(await house.admin.record(table.name) + b"\n")
    assert await verified(file, house.address) == 0


async def test_a_match_that_the_server_never_held_is_not_published(house, capsys):
    assert await verified(FILE, house.address) == 1
    assert "the server has published none for this match" in capsys.readouterr().out
