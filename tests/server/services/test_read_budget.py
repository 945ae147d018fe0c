"""The budget of reads: token buckets for addresses and tokens, at both doors."""

from __future__ import annotations

import asyncio
import math
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import pytest_asyncio
from harness import House, Wire, house_in, in_memory, until
from harness.wire import SOON_S, Refused, refusal_of

from seatwise.v1 import match_service_pb2 as pb
from seatwise_server.config import HttpSettings
from seatwise_server.limits import MOST_BUCKETS, TokenBuckets
from seatwise_server.refusal import Refusal
from seatwise_server.rpc.error_interceptor import CallerAddresses, Context
from seatwise_server.services.access import Access
from seatwise_server.services.authentication import Caller
from seatwise_server.services.read_budget import (
    LONGEST_READ_WAIT_S,
    OWN_PEER,
    ReadBudget,
    ReadRates,
    cost_of_read,
    network_of,
)

GET = "/seatwise.v1.MatchService/GetMatch"
LIST = "/seatwise.v1.MatchService/ListMatches"
RATE = 10.0
BURST = 30
LONGEST_WAIT_READS = int(RATE * LONGEST_READ_WAIT_S)


class SetClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def stranger(address: str = "192.0.2.1") -> Caller:
    return Caller(peer=f"ipv4:{address}:5000")


def waits_of(budget: ReadBudget, caller: Caller, reads: int) -> tuple[list[float], int]:
    """The waits of reads at the same moment, and how many were refused."""
    waits, refusals = list[float](), list[Refusal]()
    for _ in range(reads):
        try:
            waits.append(round(budget.reserve_turn(caller, 1.0), 6))
        except Refusal as refusal:
            refusals.append(refusal)
    assert {it.reason for it in refusals} <= {"RATE_EXCEEDED"}
    assert all(int(it.metadata["retry_after"]) >= 1 for it in refusals)
    return waits, len(refusals)


def test_a_bucket_gives_what_it_holds_and_then_makes_wait(clock: SetClock) -> None:
    buckets = TokenBuckets(RATE, BURST, clock)
    buckets.take_units("a", BURST)
    assert buckets.measure_wait("a", 1) == pytest.approx(0.1)
    assert buckets.measure_wait("b", 1) == 0
    clock.now_s += 1.0
    assert buckets.measure_wait("a", 10) == pytest.approx(0.0)
    assert buckets.measure_wait("a", 11) == pytest.approx(0.1)
    assert buckets.measure_wait("a", 10**9) == pytest.approx(2.0)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_clock_that_jumps_locks_nobody_out(clock: SetClock, jump_s: float) -> None:
    buckets = TokenBuckets(RATE, BURST, clock)
    buckets.take_units("a", BURST)
    clock.now_s += jump_s
    assert buckets.measure_wait("a", 1) <= 0.1 + 1e-6
    clock.now_s += 1.0
    assert buckets.measure_wait("a", 1) == 0


def test_the_number_of_buckets_is_bounded_and_the_newest_are_kept(clock: SetClock) -> None:
    buckets = TokenBuckets(RATE, BURST, clock)
    for number in range(MOST_BUCKETS + 100):
        buckets.take_units(str(number), BURST)
        buckets.take_units("always", 0)
    assert len(buckets) == MOST_BUCKETS
    assert buckets.measure_level(str(MOST_BUCKETS + 99)) == pytest.approx(0.0)


def test_reads_wait_for_a_bounded_time_and_are_then_refused(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE), clock)
    waits, refused = waits_of(budget, stranger(), 100)
    assert waits[:BURST] == [0.0] * BURST
    assert waits[BURST:] == sorted(waits[BURST:])
    assert max(waits) <= LONGEST_READ_WAIT_S
    assert len(waits) + refused == 100
    assert len(waits) == pytest.approx(BURST + LONGEST_WAIT_READS, abs=1)


def test_a_closed_loop_is_slowed_and_never_refused(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE), clock)
    began_s = clock.now_s
    for _ in range(1000):
        clock.now_s += budget.reserve_turn(stranger(), 1.0)
    assert clock.now_s - began_s == pytest.approx((1000 - BURST) / RATE)


def test_addresses_and_tokens_have_budgets_of_their_own(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE), clock)
    waits_of(budget, stranger(), 200)
    bot = Caller("bots/a/versions/1", "token", name="bots/a/versions/1", peer="ipv4:192.0.2.1:5000")
    assert waits_of(budget, stranger("192.0.2.2"), BURST) == ([0.0] * BURST, 0)
    assert waits_of(budget, bot, BURST) == ([0.0] * BURST, 0)
    assert waits_of(budget, bot, 100)[1]
    named_like_an_address = Caller("", "token", name="192.0.2.9")
    waits_of(budget, named_like_an_address, 200)
    assert waits_of(budget, stranger("192.0.2.9"), BURST) == ([0.0] * BURST, 0)


def test_one_machine_with_a_network_of_its_own_has_one_budget(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE), clock)
    for number in range(100):
        try:
            budget.reserve_turn(Caller(peer=f"ipv6:%5B2001:db8::{number:x}%5D:1"), 1.0)
        except Refusal:
            break
    else:
        pytest.fail("every address of the network has a budget")


@pytest.mark.parametrize("caller", [Caller(scopes=frozenset({Access.OPERATE})), Caller(peer=OWN_PEER)])
def test_operators_and_forwarded_reads_are_not_counted(clock: SetClock, caller: Caller) -> None:
    budget = ReadBudget(ReadRates(RATE, RATE), clock)
    assert waits_of(budget, caller, 1000) == ([0.0] * 1000, 0)
    assert waits_of(budget, stranger(), 1)[0] == [0.0]


def test_many_addresses_share_one_budget_and_do_not_shut_out_who_reads_little(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE, 4 * RATE), clock)
    answered = Counter[str]()
    for _ in range(600):  # a minute
        clock.now_s += 0.1
        for number in range(20):
            waits, _ = waits_of(budget, stranger(f"198.51.100.{number}"), 3)
            answered["flood"] += len(waits)
        if int(clock.now_s * 10) % 50 == 0:
            answered["quiet"] += len(waits_of(budget, stranger("192.0.2.1"), 1)[0])
    assert answered["flood"] <= 4 * RATE * (60 + 2 * LONGEST_READ_WAIT_S)
    assert answered["quiet"] >= 11


def test_a_new_address_for_each_read_brings_no_more_than_the_budget_of_all(clock: SetClock) -> None:
    budget = ReadBudget(ReadRates(RATE, 4 * RATE), clock)
    admitted = 0
    for number in range(20_000):
        try:
            budget.reserve_turn(stranger(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"), 1.0)
            admitted += 1
        except Refusal:
            pass
    assert admitted <= 4 * RATE * 2 * LONGEST_READ_WAIT_S + 1


def test_no_rate_is_no_limit(clock: SetClock) -> None:
    assert waits_of(ReadBudget(ReadRates(), clock), stranger(), 10_000) == ([0.0] * 10_000, 0)


def test_a_list_costs_its_rows() -> None:
    costs = {
        size: cost_of_read(LIST, pb.ListMatchesRequest(page_size=size)) for size in (-1, 0, 1, 50, 10**6)
    }
    assert costs == {-1: 11.0, 0: 11.0, 1: 1.2, 50: 11.0, 10**6: 201.0}
    assert cost_of_read(GET, pb.GetMatchRequest()) == 1.0
    assert [
        cost_of_read("/seatwise.v1.MatchService/WatchMatch", pb.WatchMatchRequest(all_positions=each))
        for each in (False, True)
    ] == [2.0, 7.0]


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("ipv4:192.0.2.1:5123", "192.0.2.1"),
        ("ipv4:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:5123", "192.0.2.1"),
        ("ipv6:%5B2001:db8:1:2:3::4%5D:5123", "2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3::4:5123", "2001:db8:1:2::/64"),
        ("2001:db8::5:5123", "2001:db8::/64"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:7", "192.0.2.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:7", "fe80::/64"),
        ("testclient:50000", "testclient"),
        ("", ""),
    ],
)
def test_the_network_of_a_peer(peer: str, network: str) -> None:
    assert network_of(peer) == network


class CallFrom:
    """A call, as far as its address goes."""

    def __init__(self, peer: str, *forwarded: str) -> None:
        self._peer = peer
        self._forwarded = forwarded

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple(("x-forwarded-for", text) for text in self._forwarded)


@pytest.mark.parametrize(
    ("call", "network"),
    [
        (CallFrom("ipv4:10.1.2.3:80", "192.0.2.7"), "192.0.2.7"),
        (CallFrom("ipv4:10.1.2.3:80", "203.0.113.1, 192.0.2.7"), "192.0.2.7"),
        (CallFrom("ipv4:10.1.2.3:80", "203.0.113.1", "192.0.2.7"), "192.0.2.7"),
        (CallFrom("ipv4:10.1.2.3:80", "2001:db8::7"), "2001:db8::/64"),
        (CallFrom("ipv4:10.1.2.3:80", "192.0.2.7, 10.9.9.9"), "192.0.2.7"),
        (CallFrom("ipv4:10.1.2.3:80", "192.0.2.7:5123"), "192.0.2.7"),
        (CallFrom("ipv6:%5B::ffff:10.1.2.3%5D:80", "[2001:db8::7]:5123"), "2001:db8::/64"),
        (CallFrom("ipv4:10.1.2.3:80", "192.0.2.7, nonsense"), "10.1.2.3"),
        (CallFrom("ipv4:10.1.2.3:80", "nonsense"), "10.1.2.3"),
        (CallFrom("ipv4:10.1.2.3:80", "unix:"), "10.1.2.3"),
        (CallFrom("ipv4:10.1.2.3:80"), "10.1.2.3"),
        (CallFrom("ipv4:192.0.2.66:80", "192.0.2.7"), "192.0.2.66"),
        (CallFrom("unix:", "192.0.2.7"), "unix"),
    ],
)
def test_only_a_proxy_that_was_named_says_who_calls(call: CallFrom, network: str) -> None:
    addresses = CallerAddresses(["10.0.0.0/8"])
    assert network_of(addresses.peer_of(cast("Context", call))).rstrip(":") == network


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limited_house() -> AsyncIterator[House]:
    """A server with a small budget, a process for reads, and HTTP; its callers come through a proxy."""
    with tempfile.TemporaryDirectory(prefix="sw-", dir=in_memory()) as folder:
        http = HttpSettings(port=0, trusted_proxies=("127.0.0.0/8",))
        settings = {"reads_per_second": RATE, "anonymous_reads_per_second": 0.0, "proxies": ("127.0.0.0/8",)}
        async with house_in(Path(folder), has_read_process=True, http=http, **settings) as house:
            assert house.server
            assert house.server.reads
            reads = house.server.reads
            await until(lambda: reads.pid, 60.0)
            yield house


async def read_match(wire: Wire, name: str, address: str, token: str = "") -> bytes:
    metadata = [("x-forwarded-for", address)]
    if token:
        metadata.append(("authorization", f"Bearer {token}"))
    call: Any = wire.channel.unary_unary(GET)
    request = pb.GetMatchRequest(name=name).SerializeToString()
    answer: bytes = await call(request, metadata=metadata, timeout=6 * SOON_S)
    return answer


async def outcomes_of(*calls: Any) -> Counter[str]:
    """How many calls were answered, and how many were refused for which reason."""
    ends = await asyncio.gather(*calls, return_exceptions=True)
    return Counter(Refused.of(it).reason if isinstance(it, grpc.aio.AioRpcError) else "OK" for it in ends)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_caller_over_grpc_is_slowed_and_then_refused(limited_house: House) -> None:
    """Forwarded reads are counted once: what several addresses read together is more than one may."""
    house, wire = limited_house, limited_house.wire()
    match = await house.admin.create([(await house.bot()).bot for _ in range(2)])
    for number in range(1, 4):
        reads = [read_match(wire, match.name, f"192.0.2.{number}") for _ in range(BURST)]
        assert await outcomes_of(*reads) == {"OK": BURST}
    found = await outcomes_of(*(read_match(wire, match.name, "192.0.2.50") for _ in range(200)))
    assert found.keys() == {"OK", "RATE_EXCEEDED"}
    assert found["OK"] >= BURST + LONGEST_WAIT_READS
    refused = await refusal_of(_one_too_many(wire, match.name, "192.0.2.51"))
    assert (refused.code, refused.reason) == ("RESOURCE_EXHAUSTED", "RATE_EXCEEDED")
    assert await read_match(wire, match.name, "192.0.2.52")


async def _one_too_many(wire: Wire, name: str, address: str) -> None:
    calls = [asyncio.ensure_future(read_match(wire, name, address)) for _ in range(300)]
    try:
        for call in asyncio.as_completed(calls):
            await call
    finally:
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_bot_has_a_budget_of_its_own_and_operators_have_none(limited_house: House) -> None:
    house = limited_house
    bot = await house.bot()
    match = await house.admin.create([bot.bot, (await house.bot()).bot])
    admin = house.admin.token
    assert await outcomes_of(*(read_match(bot, match.name, "", admin) for _ in range(300))) == {"OK": 300}
    found = await outcomes_of(*(read_match(bot, match.name, "", bot.token) for _ in range(300)))
    assert found.keys() == {"OK", "RATE_EXCEEDED"}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_caller_over_http_is_slowed_and_then_told_when_to_come_back(limited_house: House) -> None:
    house = limited_house
    match = await house.admin.create([(await house.bot()).bot for _ in range(2)])

    async def read(address: str) -> Any:
        async with house.http() as http:
            return await http.get(f"/v1/{match.name}", **{"x-forwarded-for": address})

    page = await asyncio.gather(*(read("192.0.2.60") for _ in range(10)))
    assert [answer.status for answer in page] == [200] * 10
    answers = await asyncio.gather(*(read("192.0.2.61") for _ in range(150)))
    assert {answer.status for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.reason == "RATE_EXCEEDED"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["ratelimit"].startswith('"reads";r=0;')
    assert (await read("192.0.2.62")).status == 200


@pytest.mark.asyncio(loop_scope="session")
async def test_the_response_to_a_read_over_http_says_what_is_left(limited_house: House) -> None:
    async with limited_house.http() as http:
        answers = [await http.get("/v1/ladders", **{"x-forwarded-for": "192.0.2.90"}) for _ in range(2)]
        unlimited = await http.get("/v1/openapi.json")
    policies = {each.headers["ratelimit-policy"] for each in answers}
    assert policies == {f'"reads";q={BURST};w={math.ceil(BURST / RATE)}'}
    left, later = [re.fullmatch(r'"reads";r=(\d+);t=(\d+)', each.headers["ratelimit"]) for each in answers]
    assert left
    assert later
    assert int(left[1]) < BURST
    assert 0 < int(later[2]) <= math.ceil(BURST / RATE)
    assert "ratelimit" not in unlimited.headers
