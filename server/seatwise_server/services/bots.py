"""BotService: which bots may play."""

from __future__ import annotations

from collections.abc import Collection

from seatwise.v1 import bot_service_pb2 as pb
from seatwise_server import resources
from seatwise_server.bot_names import BadBotName
from seatwise_server.lobby.aborting import Aborting
from seatwise_server.lobby.queue import QUEUES
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.paging import page_size
from seatwise_server.services.request_limits import LONGEST_REQUEST_ID, check_text
from seatwise_server.store import Bots, RegisteredBot, Store
from seatwise_server.store.errors import BadPageToken, BotAbsent, BotDeleted, BotExists

LONGEST_OWNER = 80


class BotService:
    """See bot_service.proto."""

    def __init__(self, store: Store, aborting: Aborting, house_bots: Collection[str]) -> None:
        self._aborting = aborting
        self._house_bots = house_bots
        """The server runs them itself; their names are not for deletion."""
        self._queues = store.queues
        self._bots = store.bots
        self._ladders = store.ladders
        self._no_shows = store.no_shows
        self._attendances = store.attendances

    async def register_bot(self, caller: Caller, request: pb.RegisterBotRequest) -> pb.RegisterBotResponse:
        """See bot_service.proto."""
        check_text("owner", request.owner, LONGEST_OWNER)
        check_text("request_id", request.request_id, LONGEST_REQUEST_ID)
        try:
            issued = await self._bots.register_bot(
                request.bot, request.version or "1", request.owner, request.request_id
            )
        except BadBotName as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        except BotDeleted as there:
            raise Refusal("ALREADY_EXISTS", f"{there}; register another version") from None
        except BotExists as there:
            raise Refusal(
                "ALREADY_EXISTS", f"{there}; register another version, or rotate its token"
            ) from None
        bot = await self._get_registered(issued.bot)
        return pb.RegisterBotResponse(bot=resources.bot_resource(bot), token=issued.token or "")

    async def rotate_token(self, caller: Caller, request: pb.RotateTokenRequest) -> pb.RotateTokenResponse:
        """See bot_service.proto."""
        await self._get_registered(request.name)
        issued = await self._bots.rotate_token(request.name)
        return pb.RotateTokenResponse(token=issued.token or "")

    async def revoke_token(self, caller: Caller, request: pb.RevokeTokenRequest) -> pb.RevokeTokenResponse:
        """See bot_service.proto."""
        await self._get_registered(request.name)
        await self._bots.revoke_token(request.name)
        return pb.RevokeTokenResponse(bot=resources.bot_resource(await self._get_registered(request.name)))

    async def delete_bot(self, caller: Caller, request: pb.DeleteBotRequest) -> pb.DeleteBotResponse:
        """See bot_service.proto. Each step may be repeated, and the open streams end by themselves."""
        name = request.name
        if name in self._house_bots:
            message = f"name is {name}, a bot of the house; start the server with --no-house-bots instead"
            raise Refusal("INVALID_ARGUMENT", message)
        try:
            await self._bots.delete_bot(name)
        except (BadBotName, BotAbsent):
            raise bot_not_found(name) from None
        for queue in (*QUEUES, *await self._ladders.list_names()):
            await self._queues.leave_queue(queue, name)
        aborted = await self._aborting.abort_waiting_for(name, f"{name} was deleted")
        return pb.DeleteBotResponse(aborted_matches=aborted)

    async def get_bot(self, caller: Caller, request: pb.GetBotRequest) -> pb.GetBotResponse:
        """See bot_service.proto."""
        bot = resources.bot_resource(await self._get_registered(request.name))
        bot.attending = bool(await self._attendances.present_bots([bot.name]))
        for ladder, reason in sorted((await self._ladders.ladders_off(bot.name)).items()):
            bot.taken_off.add(ladder=ladder, reason=reason)
        if off := await self._no_shows.off(bot.name):
            bot.off_queues.CopyFrom(resources.off_queues(off))
        return pb.GetBotResponse(bot=bot)

    async def list_bots(self, caller: Caller, request: pb.ListBotsRequest) -> pb.ListBotsResponse:
        """See bot_service.proto."""
        try:
            page = await self._bots.list_page(page_size(request.page_size), request.page_token)
        except BadPageToken as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        return pb.ListBotsResponse(
            bots=map(resources.bot_resource, page.bots), next_page_token=page.next_page_token
        )

    async def _get_registered(self, name: str) -> RegisteredBot:
        return await find_bot(self._bots, name)


async def find_bot(bots: Bots, name: str) -> RegisteredBot:
    """Returns the bot of that name. Raises the refusal NOT_FOUND for a bot that is not registered."""
    try:
        bot = await bots.get_bot(name)
    except (BadBotName, BotAbsent):
        bot = None
    if bot is None:
        raise bot_not_found(name)
    return bot


def bot_not_found(name: str) -> Refusal:
    """Returns the refusal for a bot that is not registered."""
    return Refusal("NOT_FOUND", f"no bot {name[:80]!r} is registered", bot=name[:80])
