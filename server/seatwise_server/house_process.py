"""The process of the house bots, started by `house`.

It is told {"link": {"address", "insecure", "tls_pin"}, "players": [{"game", "sample", "is_paced", "token"}], "search_share"}. The
share is the part of all cores that searches may take together; null if no bot searches. It ends with the server at once, even while
bots compute a move: their matches wait in the store.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator
from typing import Any

from seatwise import Bot
from seatwise.child_process import lower_priority, told_lines
from seatwise.errors import SeatwiseError, first_error
from seatwise.kits import KITS
from seatwise.kits.race_steps import Thought
from seatwise.kits.search_limit import SEARCH_LIMIT
from seatwise.remote import run_async
from seatwise.samples import sample as find_sample

MOST_HOUSE_MATCHES = 64
SEARCH_NICENESS = 10
"""How far the searches step back behind the referee when both want a core."""


def main() -> None:
    """Run the bots until standard input closes."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    told = next(told_lines())
    if told["search_share"] is not None:
        SEARCH_LIMIT.limit_share(told["search_share"])
        lower_priority(SEARCH_NICENESS)
    sys.exit(_run_all(told["link"], told["players"]))


def _run_all(link: dict[str, Any], players: list[dict[str, Any]]) -> str:
    """Run the bots. Return why one of them cannot go on, as when an operator has revoked its token; then the server starts all again."""
    why = "no bot is left"
    try:
        asyncio.run(_run(link, players))
    except* SeatwiseError as group:
        why = str(first_error(group))
    return f"the house bots end, and start again: {why}"


async def _run(link: dict[str, Any], players: list[dict[str, Any]]) -> None:
    async with asyncio.TaskGroup() as group:
        for player in players:
            group.create_task(_play(link, **player))


async def _play(link: dict[str, Any], sample: str, game: str, token: str, *, is_paced: bool) -> None:
    bot = pace_thoughts(find_sample(sample, game), KITS[game].main_method) if is_paced else sample
    await run_async(bot, game=game, token=token, queues=(), max_matches=MOST_HOUSE_MATCHES, **link)


def pace_thoughts(bot: type[Bot], method: str) -> type[Bot]:
    """Return the bot with a method, a generator, that takes as long as the thoughts that it yields declare."""
    build = getattr(bot, method)

    async def build_slowly(self: Bot, view: Any) -> AsyncGenerator[Any, None]:
        for answer in build(self, view):
            if isinstance(answer, Thought):
                await asyncio.sleep(answer.ms / 1000)
            yield answer

    return type(f"Paced{bot.__name__}", (bot,), {method: build_slowly})


if __name__ == "__main__":
    main()
