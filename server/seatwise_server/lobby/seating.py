"""Creates matches, reserves their seats and hands them to referees. Every step may be repeated after a crash."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence

import structlog

from seatwise_referee.game import Options
from seatwise_referee.games.registry import GAMES
from seatwise_referee.journal import canonical_json
from seatwise_referee.match_state import MatchState
from seatwise_referee.setup import JOURNAL_FORMAT, Setup
from seatwise_referee.shuffle import SEED_BYTES
from seatwise_referee.time_control import TimeControl
from seatwise_server.game_choice import kind_of_game
from seatwise_server.store import Reservation, Store
from seatwise_server.store.match_filters import facets_of
from seatwise_server.store.matches import WAITED_SINCE

log = structlog.get_logger()


class Seating:
    """Seats bots in new matches."""

    def __init__(self, store: Store, durability: str) -> None:
        self._store = store
        self._durability = durability

    def new_setup(
        self,
        match: str,
        game: str,
        bots: Sequence[str],
        options: Options,
        time_control: TimeControl,
        competition: str = "",
    ) -> Setup:
        """Returns the setup of a match with a new seed. Raises `BadOptions` if the game does not have these options."""
        rules = GAMES[game]
        return Setup(
            match=match,
            game=game,
            rules_version=rules.rules_version,
            options=rules.complete_options(options),
            bots=tuple(bots),
            time_control=time_control,
            seed=secrets.token_bytes(SEED_BYTES),
            durability=self._durability,
            competition=competition,
        )

    async def create_match(
        self,
        setup: Setup,
        state: MatchState,
        queue: str,
        until_ms: int | None = None,
        since_ms: Mapping[str, int] | None = None,
    ) -> bool:
        """Writes the match to the store; returns False if it exists already: then its first seed stays.

        `since_ms` tells since when its bots have waited, in a queue in which no-shows count. Raises
        MatchRetired if the match was dropped, and ProposalExpired at `until_ms` of Redis's clock or later.
        """
        meta: dict[str, bytes | str | int] = {
            "format": JOURNAL_FORMAT,
            "setup": canonical_json(setup.to_json()),
            "state": state,
            "queue": queue,
        }
        if since_ms:
            meta[WAITED_SINCE] = json.dumps(since_ms)
        return await self._store.matches.create_match(setup.match, meta, until_ms, facets_of(setup))

    async def drop_unowned(self, match: str, until_ms: int) -> bool:
        """Drops a match that `create_match` wrote and that was not seated; returns False if it has had an
        owner.

        Raises ProposalExpired at `until_ms` of Redis's clock or later.
        """
        return await self._store.matches.drop_unowned(match, until_ms)

    async def is_handed_over(self, match: str) -> bool:
        """Whether the match has a job, or has had one that a referee took.

        The job is read first: when it is done, its referee has already left a fence.
        """
        return (
            await self._store.jobs.is_open(match) or await self._store.journal.read_fence(match) is not None
        )

    async def missing_bot(self, bots: Sequence[str]) -> str | None:
        """Returns a bot that has fewer free places than it has seats among these; None if all of them could be seated."""
        room = await self._store.seats.free_places(bots)
        found = zip(bots, room, strict=True)
        return min((bot for bot, free in found if free < bots.count(bot)), default=None)

    async def reserve_seats(
        self,
        match: str,
        bots: Sequence[str],
        until_ms: int,
        queued: Collection[str] = (),
    ) -> str | None:
        """Reserves all seats or none: if a bot is missing, releases the other seats and returns that bot.

        Seats are reserved in the order of the bots' names, so that of two lobbies that want the same bots one
        succeeds. The `queued` bots come from a queue in which no-shows count.

        Raises ProposalExpired at `until_ms` of Redis's clock or later: then another lobby may reserve and
        release these seats.
        """
        wanted = sorted((bot, seat) for seat, bot in enumerate(bots))
        answers = await self._store.seats.reserve_all(match, wanted, until_ms, queued)
        answered = list(zip((bot for bot, _ in wanted), answers, strict=True))
        missing = next((bot for bot, why in answered if not why.holds), None)
        if missing is None:
            held = [bot for bot, why in answered if why is Reservation.ALREADY]
            missing = await self._absent_bot(held)
        if missing is None:
            return None
        await self._store.seats.release_all(match, bots, until_ms)
        log.debug("seat_not_reserved", match=match, bot=missing, why=dict(answered)[missing].name)
        return missing

    async def release_seats(self, match: str, until_ms: int) -> None:
        """Releases the seats that were reserved. A lobby that died may have reserved them in another order of the bots.

        Raises ProposalExpired at `until_ms` of Redis's clock or later.
        """
        if setup := await self.setup_of(match):
            await self._store.seats.release_all(match, setup.bots, until_ms)

    async def _absent_bot(self, bots: Sequence[str]) -> str | None:
        """Returns one of these bots that is not present. A lobby that died reserved its seat, and the bot has
        left since.
        """
        if not bots:
            return None
        present = await self._store.attendances.present_bots(bots)
        return next((bot for bot in bots if bot not in present), None)

    async def hand_to_referee(self, match: str, game: str) -> None:
        """Hands the match to a referee of such games, with or without a free table."""
        await self._store.jobs.push_job(match, kind_of_game(game))

    async def setup_of(self, match: str) -> Setup | None:
        """Returns the setup with which the match was created; None if the match is not known."""
        meta = await self._store.matches.get_meta(match)
        if meta is None or "setup" not in meta.fields:
            return None
        return Setup.from_json(json.loads(meta.fields["setup"]))
