"""Only a good token opens anything, and the one table of rights says what it opens. No transport is needed to try it."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.fake_bots import ANN, BOB, FakeBots
from doubles.virtual import in_virtual_time
from structlog.testing import capture_logs

from seatwise_server.refusal import Refusal
from seatwise_server.services import call_log
from seatwise_server.services.access import (
    ACCESS,
    OWN_METHODS,
    SCOPES_OF_BOTS,
    SCOPES_OF_PEOPLE,
    Access,
)
from seatwise_server.services.authentication import (
    ANONYMOUS,
    Authenticator,
    Caller,
    TokenUses,
    read_bearer_token,
)
from seatwise_server.services.call_log import RefusedTokenLog
from seatwise_server.store.bots import Credential

ADMIN = "admin-token"
ANN_BOT = Caller("bots/ann/versions/1", ANN, SCOPES_OF_BOTS, "bots/ann/versions/1")
THE_ADMIN = Caller("", ADMIN, SCOPES_OF_PEOPLE, "admin")


def authenticator(bots: FakeBots | None = None) -> Authenticator:
    return Authenticator(bots or FakeBots(), lambda: ADMIN)  # type: ignore[arg-type]


async def reason_of(asked: Any) -> str:
    with pytest.raises(Refusal) as refused:
        await asked
    return refused.value.reason


@pytest.mark.parametrize("header", [f"Bearer {ANN}", f"bearer  {ANN} ", f" BEARER {ANN}"])
def test_a_token_is_read_from_its_header(header: str) -> None:
    assert read_bearer_token(header) == ANN
    assert read_bearer_token(None) is None


@pytest.mark.parametrize("header", ["", ANN, f"Basic {ANN}", "Bearer", "Bearer  "])
def test_a_header_of_another_form_holds_no_token(header: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_bearer_token(header)
    assert refused.value.reason == "TOKEN_MISSING"


METHODS = {access: next((name for name, it in ACCESS.items() if it is access), "") for access in Access}
"""A method for each access."""
NEEDED = [access for access in Access if METHODS[access]]
"""OWN is what no method needs: it opens methods to owners that need another scope of everybody else."""

ALLOWED: dict[str | None, str] = {
    None: "public",
    ANN: "public token attend play",
    ADMIN: "public token read register operate admin",
    "read": "public token read",
    "register": "public token register",
    "operate": "public token read operate",
    "admin": "public token read register operate admin",
    "bot:play": "public token play",
    "bot:attend": "public token attend",
    "nobody": "public token",
    "own": "public token register",  # the method of `METHODS` is one of those that owners may call
    "join": "public token join",
}
"""What each token opens: Ann's own, the local admin token, and access tokens with these scopes."""


class ScopedCredentials(FakeBots):
    """Tokens that are named after their scopes."""

    async def authenticate(self, token: str) -> Credential:
        if token not in ALLOWED or token == ANN:
            return await super().authenticate(token)
        bot, _, scopes = token.rpartition(":")
        return Credential("bots/ann/versions/1" if bot else "Joan", frozenset(scopes.split()), "tokens/x", 5)


def expected_reason(access: Access, token: str | None) -> str:
    is_bot = token == ANN or (token or "").startswith("bot:")
    if token is None:
        return "TOKEN_MISSING"
    if access is Access.JOIN:
        return "NOT_ALLOWED"
    return "NOT_ALLOWED" if (access in SCOPES_OF_BOTS) is not is_bot else "SCOPE_MISSING"


@pytest.mark.parametrize("token", ALLOWED, ids=str)
@pytest.mark.parametrize("access", NEEDED)
@in_virtual_time
async def test_a_token_opens_what_its_scopes_name(access: Access, token: str | None) -> None:
    door = authenticator(ScopedCredentials())
    asked = door.authorize(METHODS[access], token)
    if access.value in ALLOWED[token].split():
        assert (await asked).token == (token or "")
    else:
        assert await reason_of(asked) == expected_reason(access, token)


@pytest.mark.parametrize("token", ["nonsense", "", ADMIN[:-1]])
@pytest.mark.parametrize("access", NEEDED)
@in_virtual_time
async def test_other_tokens_open_nothing(access: Access, token: str) -> None:
    assert await reason_of(authenticator().authorize(METHODS[access], token)) == "TOKEN_UNKNOWN"


@in_virtual_time
async def test_a_caller_is_known_by_name_and_scopes() -> None:
    door = authenticator(ScopedCredentials())
    assert await door.authorize(METHODS[Access.PUBLIC], None) == ANONYMOUS
    assert await door.authorize(METHODS[Access.PLAY], ANN) == ANN_BOT
    assert await door.authorize(METHODS[Access.OPERATE], ADMIN) == THE_ADMIN
    assert await door.authorize(METHODS[Access.READ], "read") == Caller(
        "", "read", frozenset({Access.READ}), "Joan", 5
    )


@pytest.mark.parametrize("method", ACCESS)
@in_virtual_time
async def test_owners_may_call_the_methods_of_the_table_and_public_ones_only(method: str) -> None:
    asked = authenticator(ScopedCredentials()).authorize(method, "own")
    if method in OWN_METHODS or ACCESS[method] in (Access.PUBLIC, Access.TOKEN):
        assert (await asked).owner == "Joan"
    else:
        assert await reason_of(asked) in ("NOT_ALLOWED", "SCOPE_MISSING")


@in_virtual_time
async def test_the_scope_that_is_missing_is_named() -> None:
    with pytest.raises(Refusal) as refused:
        await authenticator(ScopedCredentials()).authorize(METHODS[Access.OPERATE], "read")
    assert refused.value.metadata == {"scope": "operate"}
    assert "scope operate" in refused.value.message


@in_virtual_time
async def test_where_there_is_no_admin_token_an_empty_token_opens_nothing() -> None:
    door = Authenticator(FakeBots(), str)  # type: ignore[arg-type]
    assert await reason_of(door.authorize(METHODS[Access.OPERATE], "")) == "TOKEN_UNKNOWN"


@in_virtual_time
async def test_the_admin_token_may_change_without_a_restart() -> None:
    texts = [ADMIN]
    door = Authenticator(FakeBots(), lambda: texts[0])  # type: ignore[arg-type]
    await door.authorize(METHODS[Access.OPERATE], ADMIN)
    texts[0] = "another"
    assert await reason_of(door.authorize(METHODS[Access.OPERATE], ADMIN)) == "TOKEN_UNKNOWN"
    await door.authorize(METHODS[Access.OPERATE], "another")


@in_virtual_time
async def test_a_use_is_written_once_a_minute_and_not_by_the_call_itself() -> None:
    written: list[str] = []

    class Recorder(FakeBots):
        async def write_uses(self, names: list[str]) -> None:
            written.extend(names)

    credentials: Any = Recorder()
    uses = TokenUses(credentials)
    door = Authenticator(credentials, str, uses)
    for _ in range(3):
        await door.authorize(METHODS[Access.PLAY], ANN)
    assert written == []
    for _ in range(2):
        await uses.write_uses()
        await door.authorize(METHODS[Access.PLAY], ANN)
    assert written == ["bots/ann/versions/1"]


def test_an_address_has_few_lines_for_refused_tokens_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(call_log.time, "monotonic", lambda: now_s)
    refusals = RefusedTokenLog()
    with capture_logs() as lines:
        for port in range(200):
            refusals.write_refusal("UNKNOWN", f"ipv4:10.0.0.9:{port}")
        refusals.write_refusal("UNKNOWN", "ipv4:10.0.0.8:1")
        assert [line["peer"] for line in lines] == [
            *(f"ipv4:10.0.0.9:{port}" for port in range(5)),
            "ipv4:10.0.0.8:1",
        ]
        lines.clear()
        now_s = 101.0
        refusals.write_refusal("UNKNOWN", "ipv4:10.0.0.9:7")
    assert [(line["event"], line.get("count"), line.get("addresses")) for line in lines] == [
        ("token_refusals_not_logged", 195, 2), ("token_refused", None, None)
    ]  # fmt: skip


def test_many_addresses_share_the_lines_for_refused_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log.time, "monotonic", lambda: 100.0)
    refusals = RefusedTokenLog()
    with capture_logs() as lines:
        for number in range(1000):
            refusals.write_refusal("UNKNOWN", f"ipv4:10.0.{number // 250}.{number % 250}:1")
    assert len(lines) == call_log.MOST_REFUSAL_LINES


@in_virtual_time
async def test_a_refused_token_is_logged_with_its_peer_and_without_the_token() -> None:
    bots = FakeBots()
    bots.refuse(BOB)
    with capture_logs() as lines:
        assert (
            await reason_of(authenticator(bots).authorize(METHODS[Access.PLAY], BOB, "ipv4:10.0.0.9:5"))
            == "TOKEN_REVOKED"
        )
    assert lines == [
        {"event": "token_refused", "log_level": "info", "reason": "REVOKED", "peer": "ipv4:10.0.0.9:5"}
    ]
