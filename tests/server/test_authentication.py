"""Only a good token opens anything, and the one table of rights says what it opens. No transport is needed to try it."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.fake_bots import ANN, BOB, FakeBots
from doubles.virtual import in_virtual_time
from structlog.testing import capture_logs

from seatwise_server.refusal import Refusal
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import ANONYMOUS, Authenticator, Caller, read_bearer_token

ADMIN = "admin-token"
ANN_BOT = Caller("bots/ann/versions/1", ANN)
THE_ADMIN = Caller("", ADMIN, is_admin=True)


def authenticator(bots: FakeBots | None = None) -> Authenticator:
    return Authenticator(bots or FakeBots(), ADMIN)  # type: ignore[arg-type]


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


RIGHTS: dict[tuple[Access, str | None], Caller | str] = {
    (Access.PUBLIC, None): ANONYMOUS,
    (Access.PUBLIC, ANN): ANN_BOT,
    (Access.PUBLIC, ADMIN): THE_ADMIN,
    (Access.PUBLIC, "nonsense"): "TOKEN_UNKNOWN",
    (Access.TOKEN, None): "TOKEN_MISSING",
    (Access.TOKEN, ANN): ANN_BOT,
    (Access.TOKEN, ADMIN): THE_ADMIN,
    (Access.TOKEN, "nonsense"): "TOKEN_UNKNOWN",
    (Access.BOT, None): "TOKEN_MISSING",
    (Access.BOT, ANN): ANN_BOT,
    (Access.BOT, ADMIN): "NOT_ALLOWED",
    (Access.BOT, ADMIN[:-1]): "TOKEN_UNKNOWN",
    (Access.ADMIN, None): "TOKEN_MISSING",
    (Access.ADMIN, ANN): "NOT_ALLOWED",
    (Access.ADMIN, ADMIN): THE_ADMIN,
    (Access.ADMIN, ""): "TOKEN_UNKNOWN",
}


@pytest.mark.parametrize(("access", "token"), RIGHTS, ids=str)
@in_virtual_time
async def test_each_access_admits_whom_it_names(access: Access, token: str | None) -> None:
    expected = RIGHTS[access, token]
    if isinstance(expected, Caller):
        assert await authenticator().authorize(access, token) == expected
    else:
        assert await reason_of(authenticator().authorize(access, token)) == expected


def test_every_access_is_tried_with_and_without_a_token() -> None:
    assert {access for access, _ in RIGHTS} == set(Access)
    assert {access for access, token in RIGHTS if token is None} == set(Access)


@in_virtual_time
async def test_a_refused_token_is_logged_with_its_peer_and_without_the_token() -> None:
    bots = FakeBots()
    bots.refuse(BOB)
    with capture_logs() as lines:
        assert (
            await reason_of(authenticator(bots).authorize(Access.BOT, BOB, "ipv4:10.0.0.9:5"))
            == "TOKEN_REVOKED"
        )
    assert lines == [
        {"event": "token_refused", "log_level": "info", "reason": "REVOKED", "peer": "ipv4:10.0.0.9:5"}
    ]
