"""BotService: registers bots, and manages their tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import cast

from cachetools import LRUCache

from seatwise.v1 import bot_pb2
from seatwise.v1 import bot_service_pb2 as pb
from seatwise_referee.ending import MatchState
from seatwise_server import resources
from seatwise_server.lobby.seating import QUEUES, Seating
from seatwise_server.refusal import Refusal, bad_argument
from seatwise_server.resource_names import BadBotName, bot_name_for, parse_bot_name
from seatwise_server.resources import match_resource, optional_timestamp
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.deal_sets import FinishedMatch, WithheldResults
from seatwise_server.services.owners import CLOSED, owner_not_found, registration_closed
from seatwise_server.services.request_fields import (
    LONGEST_REQUEST_ID,
    check_text,
    page_size,
    parse_position,
    read_owner,
    refusing_store_errors,
)
from seatwise_server.store import Bots, MatchMeta, RegisteredBot, Store
from seatwise_server.store.errors import (
    BotAbsent,
    BotDeleted,
    BotExists,
    BotShutOut,
    OwnerAbsent,
    TooManyBots,
)
from seatwise_server.store.matches import MatchFilter
from seatwise_server.store.owners import OWNERS_PREFIX

# Computes the results of a bot by opponent and game, from its newest finished matches.

MOST_OPPONENT_MATCHES = 1000
MOST_PLAYED_IN_MEMORY = 20_000
_METAS_AT_ONCE = 50
"""Few enough that other calls are answered in between."""


class OpponentTables:
    """Computes tables of opponents. A finished match does not change, so it is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._withheld = WithheldResults(store)
        self._played: LRUCache[str, FinishedMatch] = LRUCache(MOST_PLAYED_IN_MEMORY)

    async def get_table(self, caller: Caller, bot: str) -> pb.ListOpponentsResponse:
        """Return all opponents of the bot, without what is withheld from the caller."""
        wanted = MatchFilter(bot=bot, state=MatchState.FINISHED)
        names = await self._store.matches.newest_names(MOST_OPPONENT_MATCHES, wanted)
        played = await self._read_played(names)
        seen = await self._withheld.withhold_played(caller, played)
        found = _opponents(bot, seen)
        return pb.ListOpponentsResponse(opponents=found, matches=len(seen), withheld=len(played) - len(seen))

    async def _read_played(self, names: Sequence[str]) -> list[FinishedMatch]:
        missing = [name for name in names if name not in self._played]
        for at in range(0, len(missing), _METAS_AT_ONCE):
            for meta in await self._store.matches.read_metas(missing[at : at + _METAS_AT_ONCE]):
                if meta.is_over and (played := _played_match(meta)):
                    self._played[meta.match] = played
        return [played for name in names if (played := self._played.get(name))]


def _played_match(meta: MatchMeta) -> FinishedMatch | None:
    """Return the match; None if it has no result that counts."""
    match = match_resource(meta)
    if not match.result.ranks:
        return None
    return FinishedMatch(
        match=match.name,
        game=match.game,
        bots=tuple(match.bots),
        points=tuple(match.result.points),
        ranks=tuple(match.result.ranks),
        deal_set=match.deal_set.name,
        end_ms=match.end_time.ToMilliseconds(),
    )


Encounter = tuple[FinishedMatch, int, int]
"""A match, with the seats of the bot and of its opponent."""


def _opponents(bot: str, played: Iterable[FinishedMatch]) -> list[bot_pb2.OpponentRecord]:
    met = defaultdict[tuple[str, str], list[Encounter]](list)
    for match in played:
        if match.bots.count(bot) != 1:  # a bot that plays itself has no opponent
            continue
        own = match.bots.index(bot)
        for other, opponent in enumerate(match.bots):
            if other != own and match.bots.count(opponent) == 1:
                met[opponent, match.game].append((match, own, other))
    records = [_record_against(opponent, game, its) for (opponent, game), its in met.items()]
    return sorted(records, key=lambda it: (-it.matches, it.opponent, it.game))


def _record_against(opponent: str, game: str, met: Sequence[Encounter]) -> bot_pb2.OpponentRecord:
    ranks = [(match.ranks[own], match.ranks[other]) for match, own, other in met]
    return bot_pb2.OpponentRecord(
        opponent=opponent,
        game=game,
        matches=len(met),
        wins=sum(own < other for own, other in ranks),
        ties=sum(own == other for own, other in ranks),
        mean_rank=sum(own for own, _ in ranks) / len(met),
        mean_points=sum(match.points[own] for match, own, _ in met) / len(met),
        opponent_mean_points=sum(match.points[other] for match, _, other in met) / len(met),
        last_end_time=optional_timestamp(max(match.end_ms for match, _, _ in met) or None),
    )


LONGEST_OWNER = 80
RESERVED_PREFIXES = ("guest-", "house-")
"""No owner registers a bot whose name begins so: the server and its tools make these."""
MOST_VERSIONS = 1000
"""So many versions of a bot are looked at; no owner may have more bots."""


class BotService:
    """See bot_service.proto."""

    def __init__(
        self, store: Store, seating: Seating, house_bots: Collection[str], registration: str = CLOSED
    ) -> None:
        """`registration` says whether owners may register bots."""
        self._registration = registration
        self._owners = store.owners
        self._seating = seating
        self._house_bots = house_bots
        """Names of the bots that the server itself runs. They cannot be deleted, unless an owner has taken the name before."""
        self._opponents = OpponentTables(store)
        self._store = store
        self._bots = store.bots

    async def register_bot(self, caller: Caller, request: pb.RegisterBotRequest) -> pb.RegisterBotResponse:
        if not request.bot:
            raise bad_argument("bot", "bot is required: the name of the bot")
        request.owner = read_owner("owner", request.owner, LONGEST_OWNER)
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        try:
            bot_name = bot_name_for(request.bot, request.version or "1")
            owner = await self._admit_bot(caller, request, bot_name)
            issued = await self._bots.register_bot(
                request.bot, request.version or "1", owner, request.request_id
            )
        except BadBotName as bad:
            raise bad_argument(bad.part, str(bad)) from None
        except (BotDeleted, BotExists) as there:
            await self._discount_bot(caller, request)
            how = "register another version"
            how += "" if isinstance(there, BotDeleted) else ", or rotate its token"
            raise Refusal("ALREADY_EXISTS", f"{there}; {how}") from None
        bot = await self._get_registered(issued.bot)
        if caller.owner:
            await self._check_registered(caller, bot)
        return pb.RegisterBotResponse(bot=resources.bot_resource(bot), token=issued.token or "")

    async def _admit_bot(self, caller: Caller, request: pb.RegisterBotRequest, bot: str) -> str:
        """Count a bot that is about to be registered, and its name, as its owner's; returns the owner.

        A bot that is registered already is not counted. The operator registers versions of any name. Raises `Refusal`.
        """
        if caller.owner:
            if self._registration == CLOSED:
                raise registration_closed()
            if request.owner not in ("", caller.owner):
                raise bad_argument("owner", f"owner must be {caller.owner}, or empty")
        owner = caller.owner or request.owner
        if await self._bots.is_known(bot):
            return owner
        if caller.owner:
            await self._check_name(caller, request.bot)
            try:
                await self._owners.add_bot(owner, bot)
            except OwnerAbsent:
                raise owner_not_found(owner) from None
            except TooManyBots as many:
                why = f"{many}; have one deleted, or ask the operator for more"
                raise Refusal("QUOTA_EXCEEDED", why, retry_after="3600") from None
        if not await self._owners.claim_name(owner, bot) and caller.owner:
            await self._owners.remove_bot(owner, bot)
            raise _name_taken(request.bot)
        return owner

    async def _check_registered(self, caller: Caller, bot: RegisteredBot) -> None:
        """Raise `Refusal` if the bot is another owner's, or its owner was erased meanwhile: then nothing of its name stays."""
        if bot.owner != caller.owner:
            raise Refusal("ALREADY_EXISTS", f"{bot.bot} is registered already; register another version")
        if await self._owners.get_owner(caller.owner) is None:
            await self._bots.erase_owner(bot.bot, caller.owner)
            raise owner_not_found(caller.owner)

    async def _check_name(self, caller: Caller, name: str) -> None:
        """Raise `Refusal` if the name tells others that the bot is the server's, or another's: versions share a name."""
        if name.startswith(RESERVED_PREFIXES):
            why = f"bot is {name}: names that begin with {', '.join(RESERVED_PREFIXES)} are the server's own"
            raise bad_argument("bot", why)
        page = await self._bots.list_page(MOST_VERSIONS, prefix=f"bots/{name}/")
        if any(bot.owner != caller.owner for bot in page.bots):
            raise _name_taken(name)

    async def _discount_bot(self, caller: Caller, request: pb.RegisterBotRequest) -> None:
        """Do not count a bot that another was quicker to register."""
        if caller.owner:
            bot = bot_name_for(request.bot, request.version or "1")
            known = await self._bots.get_bot(bot)
            if known is None or known.owner != caller.owner:
                await self._owners.remove_bot(caller.owner, bot)

    async def _check_owner(self, caller: Caller, bot: str) -> None:
        """Raise `Refusal` NOT_ALLOWED if the caller is an owner, and the bot is not its own.

        Both must say so: the owner's set may have a bot that another was quicker to register, and the operator may write any
        owner at a bot.
        """
        if not caller.owner:
            return
        is_named = (await self._get_registered(bot)).owner == caller.owner
        if not is_named or not await self._owners.has_bot(caller.owner, bot):
            raise Refusal("NOT_ALLOWED", f"{bot} is not a bot of {caller.owner}", bot=bot)

    async def rotate_token(self, caller: Caller, request: pb.RotateTokenRequest) -> pb.RotateTokenResponse:
        await self._get_registered(request.name)
        await self._check_owner(caller, request.name)
        if parse_bot_name(request.name)[0].startswith(RESERVED_PREFIXES):
            why = f"{request.name} is run by the server itself, which has its token; nobody else gets one"
            raise Refusal("NOT_ALLOWED", why, bot=request.name)
        try:
            issued = await self._bots.rotate_token(request.name, by_owner=bool(caller.owner))
        except BotShutOut as out:
            raise Refusal("NOT_ALLOWED", f"{out}; ask the operator", bot=request.name) from None
        return pb.RotateTokenResponse(token=issued.token or "")

    async def revoke_token(self, caller: Caller, request: pb.RevokeTokenRequest) -> pb.RevokeTokenResponse:
        await self._get_registered(request.name)
        await self._check_owner(caller, request.name)
        await self._bots.revoke_token(request.name, by_owner=bool(caller.owner))
        return pb.RevokeTokenResponse(bot=resources.bot_resource(await self._get_registered(request.name)))

    async def set_bot_kind(self, caller: Caller, request: pb.SetBotKindRequest) -> pb.SetBotKindResponse:
        if request.kind not in bot_pb2.BotKind.values():
            raise bad_argument("kind", f"kind is {request.kind}, which is no kind of bot")
        if caller.owner:
            await self._check_owner(caller, request.name)
        elif not caller.is_operator and (caller.is_guest or not caller.bot or caller.bot != request.name):
            why = "only the bot itself, its owner or an operator may say what kind of bot it is"
            raise Refusal("NOT_ALLOWED", why)
        await self._get_registered(request.name)
        await self._bots.set_kind(request.name, request.kind)
        bot = resources.bot_resource(await self._get_registered(request.name))
        bot.kind = request.kind
        return pb.SetBotKindResponse(bot=bot)

    async def delete_bot(self, caller: Caller, request: pb.DeleteBotRequest) -> pb.DeleteBotResponse:
        """See bot_service.proto. Each step may be repeated. The bot's open streams end by themselves."""
        name = request.name
        known = await self._bots.get_bot(name)
        if name in self._house_bots and not (known and known.owner.startswith(OWNERS_PREFIX)):
            message = f"name is {name}, a house bot; start the server with --no-house-bots instead"
            raise bad_argument("name", message)
        if known:
            await self._owners.claim_name(known.owner, name)  # a bot of before the server kept names
        if known and known.owner:
            await self._owners.remove_bot(known.owner, name)
        try:
            await self._bots.delete_bot(name)
        except (BadBotName, BotAbsent):
            raise bot_not_found(name) from None
        for queue in (*QUEUES, *await self._store.ladders.list_names()):
            await self._store.queues.leave_queue(queue, name)
        aborted = await self._seating.abort_waiting_for(name, f"{name} was deleted")
        return pb.DeleteBotResponse(aborted_matches=aborted)

    async def get_bot(self, caller: Caller, request: pb.GetBotRequest) -> pb.GetBotResponse:
        known = await self._get_registered(request.name)
        bot = resources.bot_resource(known)
        if known.last_use_ms and Access.READ in caller.scopes:
            bot.token_last_use_time.CopyFrom(resources.timestamp(known.last_use_ms * 1000))
        bot.attending = bool(await self._store.attendances.present_bots([bot.name]))
        [kind] = await self._bots.kinds_of([bot.name])
        bot.kind = cast("bot_pb2.BotKind", kind)
        for ladder, excluded in sorted((await self._store.ladders.ladders_off(bot.name)).items()):
            bot.taken_off.add(ladder=ladder, reason=excluded.reason)
        if off := await self._store.no_shows.read_off_queues(bot.name):
            bot.off_queues.CopyFrom(resources.off_queues(off))
        return pb.GetBotResponse(bot=bot)

    async def list_bots(self, caller: Caller, request: pb.ListBotsRequest) -> pb.ListBotsResponse:
        with refusing_store_errors():
            page = await self._bots.list_page(page_size(request.page_size), request.page_token)
        bots = list(map(resources.bot_resource, page.bots))
        names = [bot.name for bot in bots]
        present = await self._store.attendances.present_bots(names)
        for bot, kind in zip(bots, await self._bots.kinds_of(names), strict=True):
            bot.attending = bot.name in present
            bot.kind = cast("bot_pb2.BotKind", kind)
        return pb.ListBotsResponse(bots=bots, next_page_token=page.next_page_token)

    async def list_opponents(
        self, caller: Caller, request: pb.ListOpponentsRequest
    ) -> pb.ListOpponentsResponse:
        """See bot_service.proto. A page token is the number of opponents before the page."""
        start, size = parse_position(request.page_token), page_size(request.page_size)
        await self._get_registered(request.name)
        table = await self._opponents.get_table(caller, request.name)
        table.next_page_token = str(start + size) if len(table.opponents) > start + size else ""
        del table.opponents[start + size :], table.opponents[:start]
        return table

    async def _get_registered(self, name: str) -> RegisteredBot:
        return await find_bot(self._bots, name)


async def find_bot(bots: Bots, name: str) -> RegisteredBot:
    """Return the bot of that name. Raises `Refusal` NOT_FOUND for a bot that is not registered."""
    bot = await bots.get_bot(name)
    if bot is None:
        raise bot_not_found(name)
    return bot


def check_bot_name(field: str, name: str) -> None:
    """Raise `Refusal` INVALID_ARGUMENT if this can be the name of no bot; `field` is the field of the request."""
    try:
        parse_bot_name(name)
    except BadBotName as bad:
        raise bad_argument(field, f"{field} has {name[:80]!r}: {bad}") from None


def _name_taken(name: str) -> Refusal:
    return Refusal("ALREADY_EXISTS", f"another owner has or had a bot named {name}; choose another name")


def bot_not_found(name: str) -> Refusal:
    return Refusal("NOT_FOUND", f"no bot {name[:80]!r} is registered", bot=name[:80])
