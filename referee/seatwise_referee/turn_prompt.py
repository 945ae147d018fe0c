"""A prompt that is answered in turn: each answer is decided when it arrives."""

from __future__ import annotations

from typing import Any

from seatwise_referee.decision import TIME_IS_OVER, AbsentSeat, AcceptMove, Decision
from seatwise_referee.ending import RejectReason
from seatwise_referee.game import IllegalMove, Prompt, Seat
from seatwise_referee.journal import DefaultReason, Moved, WeightedMove, fault_of_choices, with_choices
from seatwise_referee.mixed_move import MixedMove, check_choices, draw_choice
from seatwise_referee.prompt_clock import PromptClock


class TurnPrompt:
    """Decides on answers one by one. The other way of asking is `race_prompt.RacePrompt`.

    It knows nothing but the position and the clocks, so one object serves all turns of a match.
    """

    def __init__(self, decision: Decision, clock: PromptClock) -> None:
        self._decision = decision
        self._clock = clock

    def submit_move(self, seat: Seat, request_id: str, move: Any, now: int) -> int | None:
        """Decide on the answer of a seat that is asked.

        Returns the time at which the match moves on; `None` if the seat is still asked.
        """
        decision, clock = self._decision, self._clock
        position = decision.position
        prompt = position.prompt
        assert prompt is not None
        now = max(now, position.at_ms)
        asked_ms, allowance_ms, charged_ms = clock.charge_parts(seat, now)
        if charged_ms > self._allowed_ms(prompt, seat):
            decision.reject_answer(seat, request_id, RejectReason.TOO_LATE, TIME_IS_OVER, now)
            return self._time_out([seat], now)
        try:
            if isinstance(move, MixedMove):
                move, state, choices = self._draw_move(prompt, seat, move)
            else:
                state, choices = decision.game.play(position.state, seat, move), None
        except IllegalMove as illegal:
            return now if decision.reject_illegal(seat, request_id, str(illegal), now) else None
        written, seq = decision.game.move_to_json(move), position.seq + 1
        entry = Moved(seq, now, seat, prompt.number, written, asked_ms, allowance_ms, charged_ms, request_id)
        decision.record_entry(entry if choices is None else with_choices(entry, choices), state)
        decision.effects.append(AcceptMove(seat, request_id, charged_ms))
        return now

    def _draw_move(
        self, prompt: Prompt, seat: Seat, mixed: MixedMove
    ) -> tuple[Any, Any, tuple[WeightedMove, ...]]:
        """Return the choice that is drawn, the game's state after it, and all choices as entries hold them.

        Raises `IllegalMove` if any choice is illegal, or they may not be together, before anything is drawn.
        """
        decision, position = self._decision, self._decision.position
        check_choices(decision.game, position.state, seat, [move for move, _ in mixed.choices])
        written = tuple(
            WeightedMove(decision.game.move_to_json(move), weight) for move, weight in mixed.choices
        )
        if fault := fault_of_choices(position.seq + 1, written):
            raise IllegalMove(fault)
        weights = [choice.weight for choice in written]
        index = draw_choice(decision.setup, position.nonces, seat, prompt.number, weights)
        drawn = mixed.choices[index][0]
        return drawn, decision.game.play(position.state, seat, drawn), written

    def decide_due(self, now: int) -> int | None:
        """Play for seats whose time is over. Returns when the match moves on; `None` if no seat is late."""
        prompt = self._decision.position.prompt
        assert prompt is not None
        now = max(now, self._decision.position.at_ms)
        late = [
            seat for seat in self._clock if self._clock.charged_ms(seat, now) > self._allowed_ms(prompt, seat)
        ]
        return self._time_out(late, now) if late else None

    def _time_out(self, late: list[Seat], now: int) -> int:
        absent = [AbsentSeat(seat, charge=self._clock.charge_of(seat, now)) for seat in late]
        self._decision.play_defaults(DefaultReason.TIMED_OUT, absent, now)
        self._decision.forfeit_for_strikes(late, now)
        return now

    def wake_ms(self) -> int | None:
        """Return when the first seat that is asked will be late; `None` if no seat is asked."""
        prompt = self._decision.position.prompt
        if prompt is None:
            return None
        earliest: int | None = None
        for seat in self._clock:
            deadline_ms = self._clock.deadline_ms(seat, self._allowed_ms(prompt, seat))
            if earliest is None or deadline_ms < earliest:
                earliest = deadline_ms
        return None if earliest is None else 1 + earliest

    def _allowed_ms(self, prompt: Prompt, seat: Seat) -> int:
        decision = self._decision
        return decision.in_time_ms[prompt.pace] + decision.position.seats[seat].bank_ms
