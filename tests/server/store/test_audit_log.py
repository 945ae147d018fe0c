"""The audit log: what admins did and were refused, hash-chained, with pseudonyms that can lose their meaning."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harness import House, house_in, in_memory, refusal_of
from harness.terminal import ctl, seatwise
from redis.asyncio import Redis

from seatwise.season.audit_chain import verify_audit_log
from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1 import bot_service_pb2
from seatwise_server.config import HttpSettings
from seatwise_server.refusal import Refusal
from seatwise_server.services import audit_trail
from seatwise_server.services.access import ACCESS, Access
from seatwise_server.services.audit_trail import AuditTrail, audit_operation, is_audited
from seatwise_server.services.authentication import Caller
from seatwise_server.services.operations import Operation
from seatwise_server.store import AuditEvent, AuditLog, Store
from seatwise_server.store import audit as audit_store
from seatwise_server.store.errors import StoreUnavailable

DELETE = "/seatwise.v1.BotService/DeleteBot"
in_one_loop = pytest.mark.asyncio(loop_scope="session")


def event(what: str = "bots/x/versions/1", who: str = "Joan", address: str = "10.0.0.9") -> AuditEvent:
    return AuditEvent(who, address, DELETE, what, "admitted")


async def lines_of(audit: AuditLog) -> list[str]:
    return [it.line for it in await audit.read_page(0, 1000)]


def verdict(lines: list[str]) -> tuple[int, int, str]:
    return verify_audit_log([line.encode() + b"\n" for line in lines])


# The log in the store


async def test_a_log_verifies_whole_and_from_any_entry_on(store: Store) -> None:
    for number in range(5):
        await store.audit.append_event(event(f"bots/x/versions/{number}"))
    lines = await lines_of(store.audit)
    assert verdict(lines) == (5, 1, "")
    assert verdict(lines[2:]) == (3, 3, "")
    assert verdict([])[2]


async def test_no_entry_can_be_changed_removed_added_or_moved(store: Store) -> None:
    for number in range(4):
        await store.audit.append_event(event(f"bots/x/versions/{number}"))
    good = await lines_of(store.audit)
    for wrong in (
        [good[0], *good[2:]],
        [good[1], good[0], *good[2:]],
        [good[0], good[0], *good[1:]],
        [good[0].replace("admitted", "adnitted"), *good[1:]],
        [*good[:2], good[2].replace('"seq":3', '"seq":4'), good[3]],
        ["{}", *good],
        ["[" * 5000, *good],
        [good[0] + " " * 9000, *good[1:]],
        [good[0].replace(",", ", ", 1), *good[1:]],
    ):
        assert verdict(wrong)[2], wrong


async def test_many_processes_write_one_chain(store: Store) -> None:
    logs = [AuditLog(store.client) for _ in range(4)]
    await asyncio.gather(*[log.append_event(event(f"bots/x/versions/{n}")) for n, log in enumerate(logs * 5)])
    lines = await lines_of(store.audit)
    assert verdict(lines) == (20, 1, "")
    assert len({json.loads(line)["thing"] for line in lines}) == 20


async def test_a_write_whose_reply_was_lost_is_not_written_twice(store: Store, redis_client: Redis) -> None:
    from seatwise_server.store.redis import scripts

    await store.audit.append_event(event())
    [line] = await lines_of(store.audit)
    assert await scripts.run_script(store.client, "audit_append", ["seatwise:{audit}:log"], 0, 100, line) == 1
    assert await redis_client.xlen("seatwise:{audit}:log") == 1


async def test_old_entries_are_dropped_and_the_rest_verifies(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_store, "MOST_ENTRIES", 100)
    for _ in range(350):
        await store.audit.append_event(event())
    lines = await lines_of(store.audit)
    assert 100 <= len(lines) < 300
    count, first, fault = verdict(lines)
    assert (count, first, fault) == (len(lines), 351 - len(lines), "")


async def test_names_and_addresses_are_in_no_line_and_their_meaning_can_be_deleted(
    store: Store, redis_client: Redis
) -> None:
    await store.audit.append_event(event())
    await store.audit.append_event(event())
    before = await store.audit.read_page(0, 10)
    assert {(it.who, it.address) for it in before} == {("Joan", "10.0.0.9")}
    who = {json.loads(it.line)["who"] for it in before}
    assert len(who) == 1
    await store.audit.forget_person("Joan")
    after = await store.audit.read_page(0, 10)
    assert [(it.line, it.who, it.address) for it in after] == [(it.line, "", "") for it in before]
    for key in await redis_client.keys():
        assert b"Joan" not in key + await redis_client.dump(key)
        assert b"10.0.0.9" not in key + await redis_client.dump(key)


async def test_an_event_that_comes_late_does_not_name_who_was_erased(
    store: Store, redis_client: Redis
) -> None:
    """Its process stood still: the name and the address were there again for 400 days."""
    await store.audit.append_event(event())
    for _ in range(2):
        await store.audit.forget_person("Joan")
        await store.audit.append_event(event())
        assert await store.audit.pseudonym_of_person("Joan")
        for key in await redis_client.keys():
            assert b"Joan" not in key + await redis_client.dump(key)
            assert b"10.0.0.9" not in key + await redis_client.dump(key)
    found = await store.audit.read_page(0, 10)
    assert {(it.who, it.address) for it in found} == {("", "")}
    assert len({json.loads(it.line)["who"] for it in found}) == 3
    [note] = await redis_client.keys("*:erased:*")
    assert 0 < await redis_client.pttl(note) <= audit_store.ERASED_NOTE_MS
    await redis_client.delete(note)
    await store.audit.append_event(event())
    assert (await store.audit.read_page(3, 10))[0].who == "Joan"


async def test_meanings_are_kept_for_a_while_only(store: Store, redis_client: Redis) -> None:
    await store.audit.append_event(event())
    for key in await redis_client.keys("seatwise:{audit}:*"):
        if key != b"seatwise:{audit}:log":
            assert 0 < await redis_client.pttl(key) <= audit_store.KEEP_PEOPLE_MS


# What is written, and when


class Recorder:
    """Takes events in the place of the log."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []
        self.is_away = False

    async def append_event(self, event: AuditEvent) -> None:
        if self.is_away:
            raise StoreUnavailable("gone")
        self.events.append(event)

    async def pseudonym_of_person(self, name: str) -> str:
        return f"person-of-{name}"


def delete_operation(recorder: Recorder, done: list[str], refusal: Refusal | None = None) -> Operation:
    async def handle(_caller: Caller, request: bot_service_pb2.DeleteBotRequest) -> None:
        done.append(f"{request.name} after {len(recorder.events)}")
        if refusal:
            raise refusal

    types = (bot_service_pb2.DeleteBotRequest, bot_service_pb2.DeleteBotResponse)
    operation = Operation(DELETE, Access.OPERATE, *types, is_streaming=False, handle=handle)
    return audit_operation(operation, AuditTrail(recorder))  # type: ignore[arg-type]


REQUEST = bot_service_pb2.DeleteBotRequest(name="bots/x/versions/1")
JOAN = Caller("", "t", name="Joan", peer="ipv4:10.0.0.9:5123")


async def test_an_action_is_written_before_it_is_done() -> None:
    recorder, done = Recorder(), list[str]()
    await delete_operation(recorder, done).handle(JOAN, REQUEST)
    assert done == ["bots/x/versions/1 after 1"]
    assert recorder.events == [AuditEvent("Joan", "ipv4:10.0.0.9", DELETE, "bots/x/versions/1", "admitted")]


async def test_an_action_that_cannot_be_written_is_not_done() -> None:
    recorder, done = Recorder(), list[str]()
    recorder.is_away = True
    with pytest.raises(StoreUnavailable):
        await delete_operation(recorder, done).handle(JOAN, REQUEST)
    assert not done


async def test_an_action_that_is_refused_has_a_second_entry() -> None:
    recorder = Recorder()
    with pytest.raises(Refusal):
        await delete_operation(recorder, [], Refusal("NOT_FOUND", "x")).handle(JOAN, REQUEST)
    assert [it.outcome for it in recorder.events] == ["admitted", "refused: NOT_FOUND"]


async def test_refusals_cannot_fill_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    trail = AuditTrail(recorder)  # type: ignore[arg-type]
    now_s = [600.0]
    monkeypatch.setattr(audit_trail.time, "monotonic", lambda: now_s[0])
    for _ in range(1000):
        await trail.write_refusal(DELETE, "", "10.0.0.9:1", "TOKEN_MISSING")
    assert len(recorder.events) == audit_trail.REFUSALS_A_MINUTE
    now_s[0] += 60
    await trail.write_refusal(DELETE, "", "10.0.0.9:1", "TOKEN_MISSING")
    assert [it.thing for it in recorder.events[-2:]] == ["940 refusals", ""]


async def test_a_refusal_is_sent_although_it_cannot_be_written() -> None:
    recorder = Recorder()
    recorder.is_away = True
    await AuditTrail(recorder).write_refusal(DELETE, "", "", "TOKEN_MISSING")  # type: ignore[arg-type]


async def test_a_person_is_not_named_as_the_thing_of_an_action() -> None:
    recorder = Recorder()
    trail = AuditTrail(recorder)  # type: ignore[arg-type]
    for request in (
        pb.CreateAccessTokenRequest(holder="Ann"),
        pb.EraseOwnerRequest(owner="Ann"),
        pb.CreateAccessTokenRequest(holder="bots/x/versions/1"),
        bot_service_pb2.RegisterBotRequest(bot="x", owner="Ann"),
    ):
        await trail.write_action("m", JOAN, request)
    assert [it.thing for it in recorder.events] == [
        "person-of-Ann", "person-of-Ann", "bots/x/versions/1", "x",
    ]  # fmt: skip


def test_every_method_that_changes_something_for_people_is_audited() -> None:
    unaudited = {method.rpartition("/")[2] for method in ACCESS if not is_audited(method)}
    assert all(it.startswith(("Get", "List", "Watch")) or it in ("Attend", "Play") for it in unaudited)


# At the doors


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def doors() -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        async with house_in(Path(folder), ws_port=0, http=HttpSettings(port=0)) as house:
            yield house


async def newest(house: House, count: int) -> list[tuple[str, str, str]]:
    """Who, what and with which outcome, of the newest entries."""
    assert house.server
    page = (await house.server.store.audit.read_page(0, 10_000))[-count:]
    return [
        (it.who, (entry := json.loads(it.line))["method"].rpartition("/")[2], entry["outcome"]) for it in page
    ]


@in_one_loop
async def test_actions_and_refusals_are_written_at_both_doors(doors: House) -> None:
    bot = await doors.bot()
    assert await newest(doors, 1) == [("admin", "RegisterBot", "admitted")]
    delete = bot_service_pb2.DeleteBotRequest(name=bot.bot).SerializeToString()
    for wire in (bot, doors.wire()):
        await refusal_of(wire.raw(DELETE, delete))
    assert await newest(doors, 2) == [
        (bot.bot, "DeleteBot", "refused: NOT_ALLOWED"),
        ("", "DeleteBot", "refused: TOKEN_MISSING"),
    ]
    async with doors.http() as nobody, doors.http(doors.admin.token) as admin:
        await nobody.call("DELETE", f"/v1/{bot.bot}", None)
        await admin.call("DELETE", f"/v1/{bot.bot}", None)
    assert await newest(doors, 2) == [
        ("", "DeleteBot", "refused: TOKEN_MISSING"),
        ("admin", "DeleteBot", "admitted"),
    ]


@in_one_loop
async def test_the_log_is_listed_exported_and_verified_and_outlives_the_erasure_of_an_owner(
    doors: House, tmp_path: Path
) -> None:
    register = bot_service_pb2.RegisterBotRequest(bot="of-ann", owner="Ann Example")
    await doors.admin.bots.RegisterBot(register, metadata=doors.admin.metadata)
    code, said, _ = await ctl(doors, "token", "create", "Ann Example", "--scope", "operate")
    assert code == 0
    token = said.splitlines()[1]
    await ctl(doors, "forgive", "bots/of-ann/versions/1", token=token)
    code, shown, _ = await ctl(doors, "audit")
    assert (code, "Ann Example" in shown, "ForgiveNoShows" in shown) == (0, True, True)
    code, before, _ = await ctl(doors, "audit", "--json")
    code, said, _ = await ctl(doors, "erase-owner", "Ann Example")
    assert (code, "1 bots" in said, "1 access tokens" in said) == (0, True, True)
    assert "Ann Example" not in (await ctl(doors, "audit"))[1]
    assert "Ann Example" not in (await ctl(doors, "token", "list"))[1]
    assert (await ctl(doors, "leases", token=token))[0] == 1
    assert doors.server
    bot = await doors.server.store.bots.get_bot("bots/of-ann/versions/1")
    assert bot
    assert bot.owner == ""
    code, after, _ = await ctl(doors, "audit", "--json")
    assert after.startswith(before)
    assert "Ann Example" not in after
    await verified(tmp_path / "audit.jsonl", after, 0)
    await verified(tmp_path / "wrong.jsonl", after.replace("admitted", "permitted", 1), 1)


async def verified(file: Path, text: str, code: int) -> None:
    """Has `seatwise verify` check this log."""
    file.write_text(text)  # noqa: ASYNC240  # a few lines
    found, said, _ = await seatwise("verify", str(file))
    assert (found, "audit log verified" in said) == (code, code == 0), said
