"""The allowance is never more than anything that is known of a bot's distance, so a bot gains nothing by being late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatwise_server.play.allowance import (
    ANSWER_NOISE_MS,
    HANDLING_MS,
    HISTORY_S,
    KEPT_ANSWERS,
    ONE_IN_ANSWERS,
    UNPROVEN_CAP_MS,
    BotDistance,
    DistanceMeter,
    DistanceMeters,
    LeastRecent,
    QuickAnswers,
    place_of,
)

ROUND_TRIPS = st.floats(0, 400)
TIMES = st.floats(0, 4 * HISTORY_S)


@given(st.lists(st.tuples(TIMES, ROUND_TRIPS), min_size=1).map(sorted))
def test_a_value_counts_for_one_span_of_the_history_at_least_and_for_two_at_most(
    noted: list[tuple[float, float]],
) -> None:
    least = LeastRecent()
    for at, value in noted:
        least.note_value(value, at)
    now = noted[-1][0]
    found = least.least_value(now)
    assert found is not None
    assert found <= min(value for at, value in noted if at > now - HISTORY_S)
    assert found in [value for at, value in noted if at >= now - 2 * HISTORY_S]


def test_an_old_value_is_forgotten() -> None:
    least = LeastRecent()
    assert least.note_value(20.0, 5.0)
    assert not least.note_value(30.0, HISTORY_S)
    assert least.least_value(HISTORY_S + 6.0) == 20.0
    least.note_value(50.0, HISTORY_S + 7.0)
    assert least.least_value(2 * HISTORY_S + 6.0) == 50.0
    assert least.least_value(9 * HISTORY_S) is None


@given(st.lists(st.integers(0, 2000), max_size=3 * KEPT_ANSWERS))
def test_at_most_one_answer_in_fifty_is_quicker_than_the_answers_allow(times: list[int]) -> None:
    answers = QuickAnswers()
    for ms in times:
        answers.note_answer(ms)
    last = sorted(times[-KEPT_ANSWERS:])
    assert answers.quick_ms == (last[len(last) // ONE_IN_ANSWERS] if last else None)


@given(
    st.lists(ROUND_TRIPS, min_size=1), st.lists(st.floats(0, 300)), st.lists(st.integers(0, 500)),
    st.floats(0, 300),
)  # fmt: skip
def test_no_lie_of_any_kind_makes_the_kernels_allowance_longer(
    kernel: list[float], pongs: list[float], answers: list[int], lie_ms: float
) -> None:
    """A liar and its honest twin: the liar's pongs and answers are later, and its connections the same."""
    honest, liar = BotDistance(), BotDistance()
    for ms in kernel:
        honest.kernel.note_value(ms, 0.0), liar.kernel.note_value(ms, 0.0)
    for pong in pongs:
        honest.pongs.note_value(pong, 0.0), liar.pongs.note_value(pong + lie_ms, 0.0)
    for answer in answers:
        honest.answers.note_answer(answer + int(max(kernel)))
        liar.answers.note_answer(answer + int(max(kernel) + lie_ms))
    allowed, lied = honest.proven_ms(0.0), liar.proven_ms(0.0)
    assert allowed == lied == int(min(kernel) + HANDLING_MS)


def test_no_allowance_is_longer_than_the_bots_own_quick_answers_took() -> None:
    distance = BotDistance()
    distance.kernel.note_value(120.0, 0.0)
    distance.pongs.note_value(90.0, 0.0)
    assert (distance.proven_ms(0.0), distance.unproven_ms(0.0)) == (120 + HANDLING_MS, 90)
    for _ in range(ONE_IN_ANSWERS):
        distance.answers.note_answer(130)
    distance.answers.note_answer(41)
    assert distance.proven_ms(0.0) == 120 + HANDLING_MS  # one alone may be an error of ours
    distance.answers.note_answer(40)
    assert distance.proven_ms(0.0) == distance.unproven_ms(0.0) == 41 + ANSWER_NOISE_MS


def test_pongs_alone_bring_no_more_than_their_cap_and_nothing_where_a_proof_is_needed() -> None:
    meter = DistanceMeter()
    assert meter.allowance_ms(0.0, needs_proof=False) is None
    assert meter.allowance_ms(0.0, needs_proof=True) == HANDLING_MS
    assert meter.note_pong(290.0, 0.0)
    assert meter.allowance_ms(0.0, needs_proof=False) == UNPROVEN_CAP_MS
    assert meter.allowance_ms(0.0, needs_proof=True) == HANDLING_MS


@given(round_trip_ms=ROUND_TRIPS)
def test_every_bot_has_the_same_for_the_handling_of_messages_wherever_it_is(round_trip_ms: float) -> None:
    measured = DistanceMeter(read_kernel=lambda: round_trip_ms)
    assert measured.allowance_ms(0.0, needs_proof=True) == int(round_trip_ms + HANDLING_MS)
    behind = DistanceMeter()
    behind.note_pong(0.3, 0.0)  # as long as a pong takes, the handling is in it
    for needs_proof in (False, True):
        assert behind.allowance_ms(0.0, needs_proof=needs_proof) == HANDLING_MS


@pytest.mark.parametrize("needs_proof", [False, True])
def test_where_the_kernel_measures_pongs_count_for_nothing(needs_proof: bool) -> None:
    measured: list[float] = []
    meter = DistanceMeter(read_kernel=lambda: measured[0] if measured else None)
    assert not meter.note_pong(95.0, 0.0)
    assert meter.allowance_ms(0.0, needs_proof=needs_proof) is None
    measured.append(41.9)
    assert meter.allowance_ms(0.0, needs_proof=needs_proof) == 41 + HANDLING_MS
    measured[0] = 20.2
    assert meter.measure_kernel(1.0)
    measured[0] = 95.0
    assert not meter.measure_kernel(2.0)
    assert meter.allowance_ms(2.0, needs_proof=needs_proof) == 20 + HANDLING_MS


def test_a_new_connection_from_the_same_place_changes_nothing() -> None:
    meters = DistanceMeters(proxies=("10.0.0.0/8",))
    first = meters.meter_for("bots/a/versions/1", "192.0.2.7", lambda: 20.0)
    first.measure_kernel(0.0)
    for address in ("192.0.2.7", "::ffff:192.0.2.7"):
        again = meters.meter_for("bots/a/versions/1", address, lambda: 95.0)
        again.measure_kernel(1.0)
        assert again.allowance_ms(1.0, needs_proof=True) == 20 + HANDLING_MS
    elsewhere = meters.meter_for("bots/a/versions/1", "192.0.2.8", lambda: 95.0)
    assert elsewhere.allowance_ms(1.0, needs_proof=True) == 95 + HANDLING_MS


def test_of_a_bot_behind_a_proxy_the_kernel_knows_nothing() -> None:
    meters = DistanceMeters(proxies=("10.0.0.0/8",))
    behind = meters.meter_for("bots/a/versions/1", "10.1.2.3", lambda: 0.1)
    behind.note_pong(60.0, 0.0)
    assert behind.allowance_ms(0.0, needs_proof=False) == 60
    assert behind.allowance_ms(0.0, needs_proof=True) == HANDLING_MS


def test_a_host_has_one_place_however_many_addresses_it_takes() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:1%eth0") == "2001:db8::/64"
    assert place_of("2001:db8:1::1") != place_of("2001:db8::1")
    assert place_of("no address") == "no address"
    meters = DistanceMeters()
    one = meters.meter_for("a", "2001:db8::1", None)._distance
    assert meters.meter_for("a", "2001:db8::2", None)._distance is one
    assert meters.meter_for("b", "2001:db8::2", None)._distance is not one
