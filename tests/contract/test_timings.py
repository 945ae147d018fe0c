"""Limits that depend on each other fit together: leases outlast missed renewals, and nobody acts too early."""

from __future__ import annotations

from seatwise_server import timings as t


def test_a_referee_may_miss_heartbeats_and_still_speak() -> None:
    assert t.REFEREE_LEASE_S - t.REFEREE_LEASE_MARGIN_S >= 3 * t.REFEREE_HEARTBEAT_S


def test_a_referee_falls_silent_before_another_may_take_over() -> None:
    assert 0 < t.REFEREE_LEASE_MARGIN_S < t.REFEREE_LEASE_S


def test_a_lobby_counts_a_referee_exactly_as_long_as_it_may_live() -> None:
    assert t.REFEREE_SILENT_MS == t.REFEREE_LEASE_S * 1000
    assert t.REFEREE_HEARTBEAT_S * 1000 < t.REFEREE_SHOWN_SILENT_MS < t.REFEREE_SILENT_MS


def test_an_attendance_outlasts_two_missed_renewals() -> None:
    assert t.ATTENDANCE_LEASE_MS >= 3 * t.LOBBY_HEARTBEAT_S * 1000


def test_a_proposal_is_adopted_only_after_its_lobby_has_lost_it() -> None:
    assert t.PROPOSAL_ADOPT_MS - t.PROPOSAL_OWN_MS >= 5_000


def test_leases_of_single_work_outlast_a_missed_renewal() -> None:
    assert t.LADDER_LEASE_S >= 4 * t.LADDER_CHECK_S
