"""Plays through a server, against other people's bots."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, Final, Unpack

from seatwise.bot import BotFactory, check_bot
from seatwise.bot_errors import UsageError
from seatwise.codec import CODECS
from seatwise.defaults import ADDRESS, TOKEN_VARIABLE
from seatwise.errors import MissingTokenError
from seatwise.link.attendance import Attendance, Plan
from seatwise.link.security import Security, SecurityOptions
from seatwise.link.wire import GrpcWire
from seatwise.result import Result
from seatwise.samples import SAMPLES, sample
from seatwise.summary import Summary

CASUAL: Final = {"ugo": "casual", "ubongo": "casual-ubongo"}
"""Where a bot waits if nothing else is said, by game."""

log = logging.getLogger("seatwise")


def run(
    bot_class: BotFactory | str,
    game: str = "ugo",
    address: str = ADDRESS,
    token: str | None = None,
    queues: Sequence[str] | None = None,
    max_matches: int = 4,
    matches: int | None = None,
    on_result: Callable[[Result], Any] | None = None,
    handle_signals: bool = True,
    front_door: bool = False,
    **security: Unpack[SecurityOptions],
) -> Summary:
    """Connects a bot and lets it play until `matches` are finished, or for ever.

    Each match has a bot object of its own. A lost link is made again, and the bot is not told. The
    first Ctrl-C (or SIGTERM) finishes the open matches, the second leaves at once. What happens is
    logged by the logger "seatwise", which writes to stderr unless logging has been set up.

    `token` may also be in the environment, as SEATWISE_TOKEN. `queues` is the casual one of the game if not
    given; if empty, the bot plays only matches that name it. `on_result` is called with the `Result` of each
    match. With `front_door` the referees too are reached through `address`, where a proxy sends each stream
    to its referee.

    An `address` with https:// is reached by TLS; without a scheme any other machine is. The token goes in clear to another
    machine only with `insecure` (or SEATWISE_INSECURE=1). `tls_pin` is the fingerprint of the server's key, or several;
    `tls_ca` a file with the CAs to trust; `tls_cert` and `tls_key` the files of a client certificate. All of them may also
    be in the environment (SEATWISE_TLS_PIN and so on).

    Raises a `SeatwiseError` when it makes no sense to go on, e.g. when the token is revoked.
    """
    if _is_inside_a_loop():
        raise UsageError("an event loop is running here: write await seatwise.run_async(...) instead")
    with _told_on_stderr():
        return asyncio.run(run_async(
            bot_class, game, address, token, queues, max_matches, matches, on_result,
            handle_signals, front_door, **security,
        ))  # fmt: skip


async def run_async(
    bot_class: BotFactory | str,
    game: str = "ugo",
    address: str = ADDRESS,
    token: str | None = None,
    queues: Sequence[str] | None = None,
    max_matches: int = 4,
    matches: int | None = None,
    on_result: Callable[[Result], Any] | None = None,
    handle_signals: bool = False,
    front_door: bool = False,
    **security: Unpack[SecurityOptions],
) -> Summary:
    """As `run`, in a running event loop. Signals are the caller's own business, unless he says otherwise."""
    plan = _plan(bot_class, game, queues, max_matches, matches, on_result)
    wire = GrpcWire(address, _token(token), front_door, Security.of(**security))
    attendance = Attendance(plan, wire)
    with _signals(attendance) if handle_signals else nullcontext():
        summary = await attendance.run()
    log.info("%s", summary)
    return summary


# What was asked for


def _plan(
    bot_class: BotFactory | str,
    game: str,
    queues: Sequence[str] | None,
    max_matches: int,
    matches: int | None,
    on_result: Callable[[Result], Any] | None,
) -> Plan:
    if game not in CODECS:
        raise UsageError(f"{game}: no such game; there is {', '.join(CODECS)}")
    return Plan(
        factory=_factory(bot_class, game),
        game=game,
        queues=_queues(queues, game),
        max_matches=_at_least_one("max_matches", max_matches),
        matches=None if matches is None else _at_least_one("matches", matches),
        on_result=on_result,
    )


def _queues(given: Sequence[str] | None, game: str) -> tuple[str, ...]:
    if given is None:
        return (CASUAL[game],)
    return (given,) if isinstance(given, str) else tuple(given)


def _factory(bot_class: BotFactory | str, game: str) -> BotFactory:
    if not isinstance(bot_class, str):
        return check_bot(bot_class, game)
    if bot_class not in SAMPLES[game]:
        raise UsageError(f"{bot_class}: no such sample; the samples are {', '.join(SAMPLES[game])}")
    return sample(bot_class, game)


def _at_least_one(name: str, number: int) -> int:
    if number < 1:
        raise UsageError(f"{name}: must be 1 or more, not {number}")
    return number


def _token(given: str | None) -> str:
    token = given or os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise MissingTokenError(
            f"no token: pass token=..., or set {TOKEN_VARIABLE}. Who runs the server hands tokens out; on the "
            "server's own machine the command `seatwise bot FILE.py:CLASS` gets one by itself"
        )
    return token


# Where it runs


def _is_inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _told_on_stderr() -> Iterator[None]:
    """Whoever has not set up logging sees what happens all the same."""
    if log.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(sys.stderr), log.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def _signals(attendance: Attendance) -> Iterator[None]:
    """The first signal drains, the second leaves. Only the main thread can listen for them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    signals = iter((attendance.drain, attendance.leave))

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # as `signal` calls it
        loop.call_soon_threadsafe(_stop, attendance, next(signals, attendance.leave))

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _stop(attendance: Attendance, act: Callable[[], None]) -> None:
    """To leave open matches is worth a warning, to finish them is not."""
    if act == attendance.drain:
        log.info("open matches: %d, to be finished first; Ctrl-C again leaves at once", attendance.open_seats)
    else:
        log.warning("open matches: %d, left; their default moves are played", attendance.open_seats)
    act()
