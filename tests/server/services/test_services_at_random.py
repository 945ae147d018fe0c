"""Owners, invites and bots in any order of calls: every answer is the one of a model in a few lines of plain Python."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from doubles.operations import operations_on
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from seatwise.v1 import access_service_pb2, bot_service_pb2
from seatwise.v1 import owner_service_pb2 as pb
from seatwise_server.embedded import EmbeddedRedis
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Authenticator
from seatwise_server.services.owners import INVITE
from seatwise_server.store import Store, new_client

ADMIN = "the token of the local file"
OWNER_IDS = st.sampled_from(["ann", "bob", "eve"])
BOT_IDS = st.sampled_from(["first", "second", "third", "fourth"])
INDEX = st.integers(0, 5)


@dataclass
class ModelInvite:
    name: str
    text: str
    uses: int
    most_bots: int
    is_revoked: bool = False


@dataclass
class ModelOwner:
    name: str
    token: str
    most_bots: int
    bots: set[str] = field(default_factory=set)
    is_erased: bool = False


@dataclass
class ModelBot:
    name: str
    owner: ModelOwner
    token: str
    is_shut_out: bool = False
    is_deleted: bool = False


class OwnersAtRandom(RuleBasedStateMachine):
    """Calls of admins, owners and holders of invites, as every door passes them on."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.invites: list[ModelInvite] = []
        self.owners: list[ModelOwner] = []
        self.bots: dict[str, ModelBot] = {}
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        self.client = new_client(self.url)
        await self.client.call("FLUSHALL")
        store = Store(self.client)
        self.operations = operations_on(store, registration=INVITE)
        self.authenticator = Authenticator(store.credentials, lambda: ADMIN)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.client.close_connections())
        self.loop.close()

    def ask(self, method: str, token: str, request: Any) -> Any:
        """The response, or the reason of the refusal."""
        return self.loop.run_until_complete(self._ask(f"/seatwise.v1.{method}", token, request))

    async def _ask(self, method: str, token: str, request: Any) -> Any:
        operation = self.operations[method]
        try:
            caller = await self.authenticator.authorize(method, token)
            await operation.admit(caller, request)
            return await operation.handle(caller, request)
        except Refusal as refusal:
            return refusal.reason

    @initialize(bots=st.integers(1, 2))
    def begin_with_two_owners(self, bots: int) -> None:
        self.invite(2, bots)
        self.join(0, "ann")
        self.join(0, "bob")

    @rule(uses=st.integers(1, 2), bots=st.integers(1, 2))
    def invite(self, uses: int, bots: int) -> None:
        made = self.ask("OwnerService/CreateInvite", ADMIN, pb.CreateInviteRequest(uses=uses, most_bots=bots))
        self.invites.append(ModelInvite(made.invite.name, made.token, uses, bots))

    @precondition(lambda self: self.invites)
    @rule(index=INDEX)
    def revoke_invite(self, index: int) -> None:
        invite = self.invites[index % len(self.invites)]
        request = pb.RevokeInviteRequest(name=invite.name)
        assert self.ask("OwnerService/RevokeInvite", ADMIN, request).invite.HasField("revoke_time")
        invite.is_revoked = True

    @precondition(lambda self: self.invites)
    @rule(index=INDEX, owner_id=OWNER_IDS)
    def join(self, index: int, owner_id: str) -> None:
        invite, name = self.invites[index % len(self.invites)], f"owners/{owner_id}"
        answer = self.ask("OwnerService/CreateOwner", invite.text, pb.CreateOwnerRequest(owner_id=owner_id))
        if invite.is_revoked:
            assert answer == "TOKEN_REVOKED"
        elif any(it.name == name and not it.is_erased for it in self.owners):
            assert answer == "ALREADY_EXISTS"
        elif not invite.uses:
            assert answer == "NOT_ALLOWED"
        else:
            invite.uses -= 1
            assert (answer.owner.name, answer.owner.most_bots) == (name, invite.most_bots)
            self.owners.append(ModelOwner(name, answer.token, invite.most_bots))

    @precondition(lambda self: self.owners)
    @rule(index=INDEX, bot=BOT_IDS)
    def register(self, index: int, bot: str) -> None:
        owner, name = self.owners[index % len(self.owners)], f"bots/{bot}/versions/1"
        answer = self.ask("BotService/RegisterBot", owner.token, bot_service_pb2.RegisterBotRequest(bot=bot))
        if owner.is_erased:
            assert answer == "TOKEN_REVOKED"
        elif name in self.bots:
            assert answer == "ALREADY_EXISTS"
        elif len(owner.bots) >= owner.most_bots:
            assert answer == "QUOTA_EXCEEDED"
        else:
            assert (answer.bot.name, answer.bot.owner) == (name, owner.name)
            owner.bots.add(name)
            self.bots[name] = ModelBot(name, owner, answer.token)

    @precondition(lambda self: self.bots)
    @rule(index=INDEX, bot_index=INDEX, rotates=st.booleans())
    def change_token(self, index: int, bot_index: int, rotates: bool) -> None:
        owner = self.owners[index % len(self.owners)]
        bot = list(self.bots.values())[bot_index % len(self.bots)]
        method = "RotateToken" if rotates else "RevokeToken"
        request = getattr(bot_service_pb2, f"{method}Request")(name=bot.name)
        answer = self.ask(f"BotService/{method}", owner.token, request)
        if owner.is_erased:
            assert answer == "TOKEN_REVOKED"
        elif bot.name not in owner.bots:
            assert answer in ("NOT_ALLOWED", "NOT_FOUND")
        elif rotates:
            assert answer.token not in ("", bot.token)
            bot.token, bot.is_shut_out = answer.token, False
        else:
            assert answer.bot.name == bot.name
            bot.is_shut_out = True

    @precondition(lambda self: self.bots)
    @rule(index=INDEX)
    def delete_bot(self, index: int) -> None:
        bot = list(self.bots.values())[index % len(self.bots)]
        answer = self.ask("BotService/DeleteBot", ADMIN, bot_service_pb2.DeleteBotRequest(name=bot.name))
        assert not isinstance(answer, str)
        bot.owner.bots.discard(bot.name)
        bot.is_deleted = bot.is_shut_out = True

    @precondition(lambda self: self.owners)
    @rule(index=INDEX, bots=st.integers(0, 4))
    def set_quota(self, index: int, bots: int) -> None:
        owner = self.owners[index % len(self.owners)]
        request = pb.SetOwnerQuotasRequest(name=owner.name, most_bots=bots)
        answer = self.ask("OwnerService/SetOwnerQuotas", ADMIN, request)
        [now] = [it for it in self.owners if it.name == owner.name and not it.is_erased] or [None]
        if now is None:
            assert answer == "NOT_FOUND"
        else:
            now.most_bots = bots
            assert answer.owner.most_bots == bots

    @precondition(lambda self: self.owners)
    @rule(index=INDEX)
    def erase(self, index: int) -> None:
        owner = self.owners[index % len(self.owners)]
        request = access_service_pb2.EraseOwnerRequest(owner=owner.name)
        answer = self.ask("AccessService/EraseOwner", ADMIN, request)
        [now] = [it for it in self.owners if it.name == owner.name and not it.is_erased] or [None]
        assert set(answer.bots) == (now.bots if now else set())
        if now:
            now.is_erased, now.bots = True, set()

    @invariant()
    def owners_see_what_they_have(self) -> None:
        for owner in self.owners:
            answer = self.ask("OwnerService/GetOwner", owner.token, pb.GetOwnerRequest(name=owner.name))
            if owner.is_erased:
                assert answer == "TOKEN_REVOKED"
            else:
                assert (set(answer.owner.bots), answer.owner.most_bots) == (owner.bots, owner.most_bots)

    @invariant()
    def tokens_of_bots_open_what_they_should(self) -> None:
        for bot in self.bots.values():
            answer = self.ask("BotService/GetBot", bot.token, bot_service_pb2.GetBotRequest(name=bot.name))
            if bot.is_shut_out:
                assert answer == "TOKEN_REVOKED"
            else:
                assert answer.bot.owner == ("" if bot.owner.is_erased else bot.owner.name)


def play_at_random(redis_server: EmbeddedRedis, examples: int, steps: int, *phases: Phase) -> None:
    machine = type("Machine", (OwnersAtRandom,), {"url": redis_server.url})
    limits = settings(max_examples=examples, stateful_step_count=steps, phases=(Phase.generate, *phases))
    run_state_machine_as_test(machine, settings=limits)


def test_every_answer_is_the_one_of_the_model(redis_server: EmbeddedRedis) -> None:
    play_at_random(redis_server, 5, 20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_answer_is_the_one_of_the_model_however_long_it_is_played(redis_server: EmbeddedRedis) -> None:
    play_at_random(redis_server, 60, 40, Phase.shrink)
