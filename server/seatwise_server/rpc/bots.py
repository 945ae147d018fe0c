"""BotService: who may play."""

from __future__ import annotations

from seatwise.v1 import bot_service_pb2 as pb
from seatwise.v1 import bot_service_pb2_grpc
from seatwise_server import resources
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.keeper import Context, Keeper
from seatwise_server.rpc.paging import page_size
from seatwise_server.store import Bot, Store
from seatwise_server.store.errors import BadBotName, BadPageToken, BotAbsent, BotExists

LONGEST_OWNER = 80
LONGEST_REQUEST_ID = 64


class BotDoor(bot_service_pb2_grpc.BotServiceServicer):
    """See bot_service.proto."""

    def __init__(self, store: Store, keeper: Keeper) -> None:
        self._bots = store.bots
        self._ladders = store.ladders
        self._attendances = store.attendances
        self._keeper = keeper

    async def RegisterBot(self, request: pb.RegisterBotRequest, context: Context) -> pb.RegisterBotResponse:
        """See bot_service.proto."""
        await self._keeper.admin(context)
        _check_length("owner", request.owner, LONGEST_OWNER)
        _check_length("request_id", request.request_id, LONGEST_REQUEST_ID)
        try:
            issued = await self._bots.register(
                request.bot, request.version or "1", request.owner, request.request_id
            )
        except BadBotName as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        except BotExists as there:
            raise Refusal(
                "ALREADY_EXISTS", f"{there}; register another version, or rotate its token"
            ) from None
        bot = await self._known(issued.bot)
        return pb.RegisterBotResponse(bot=resources.bot(bot), token=issued.token or "")

    async def RotateToken(self, request: pb.RotateTokenRequest, context: Context) -> pb.RotateTokenResponse:
        """See bot_service.proto."""
        await self._keeper.admin(context)
        await self._known(request.name)
        issued = await self._bots.rotate(request.name)
        return pb.RotateTokenResponse(token=issued.token or "")

    async def RevokeToken(self, request: pb.RevokeTokenRequest, context: Context) -> pb.RevokeTokenResponse:
        """See bot_service.proto."""
        await self._keeper.admin(context)
        await self._known(request.name)
        await self._bots.revoke(request.name)
        return pb.RevokeTokenResponse(bot=resources.bot(await self._known(request.name)))

    async def GetBot(self, request: pb.GetBotRequest, context: Context) -> pb.GetBotResponse:
        """See bot_service.proto."""
        await self._keeper.anybody(context)
        bot = resources.bot(await self._known(request.name))
        bot.attending = bool(await self._attendances.present([bot.name]))
        for ladder, reason in sorted((await self._ladders.off(bot.name)).items()):
            bot.taken_off.add(ladder=ladder, reason=reason)
        return pb.GetBotResponse(bot=bot)

    async def ListBots(self, request: pb.ListBotsRequest, context: Context) -> pb.ListBotsResponse:
        """See bot_service.proto."""
        await self._keeper.anybody(context)
        try:
            page = await self._bots.page(page_size(request.page_size), request.page_token)
        except BadPageToken as bad:
            raise Refusal("INVALID_ARGUMENT", str(bad)) from None
        return pb.ListBotsResponse(bots=map(resources.bot, page.bots), next_page_token=page.next_page_token)

    async def _known(self, name: str) -> Bot:
        try:
            bot = await self._bots.get(name)
        except (BadBotName, BotAbsent):
            bot = None
        if bot is None:
            raise Refusal("NOT_FOUND", f"no bot {name[:80]!r} is registered", bot=name[:80])
        return bot


def _check_length(name: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise Refusal("INVALID_ARGUMENT", f"{name} has {len(text)} characters; at most {longest} are taken")
