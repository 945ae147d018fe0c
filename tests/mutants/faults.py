"""The faults that are planted, one at a time: each a change of a few words, and the suite that must notice it."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "server/seatwise_server/play/table.py"
RECEIPTS = "server/seatwise_server/play/receipts.py"
OUTBOX = "server/seatwise_server/play/outbox.py"
STREAM = "server/seatwise_server/play/stream.py"
INTAKE = "server/seatwise_server/play/intake.py"
WATCH = "server/seatwise_server/play/watch.py"
SCRIPTS = "server/seatwise_server/store/scripts"
FLUSHER = "server/seatwise_server/store/flusher.py"
MATCH = "referee/seatwise_referee/match.py"
ASKING = "referee/seatwise_referee/asking.py"
RACING = "referee/seatwise_referee/racing.py"
POSITION = "referee/seatwise_referee/position.py"
UGO = "referee/seatwise_referee/games/ugo"
VERIFY = "referee/seatwise_referee/verify"
LINK = "client_sdk/seatwise/link"

TABLES = "tests/server/test_table.py"
WIRE = (
    "tests/contract/test_non_interference_wire.py::test_a_seat_is_sent_the_same_bytes_whatever_it_cannot_know"
)
REJECTED = "tests/contract/test_non_interference_wire.py::test_the_rejections_of_others_leave_no_trace"
RACE = "tests/contract/test_non_interference_race.py"
VIEWS = "tests/contract/test_secrets.py::test_a_view_is_the_same_whatever_its_seat_cannot_know[ugo-2]"
REFUSALS = "tests/contract/test_secrets.py::test_a_seat_is_offered_and_refused_the_same_whatever_it_cannot_know[ugo-2]"
SECRETS_WIRE = "tests/contract/test_secrets_wire.py"
RULES = "tests/referee/test_ugo.py"
MATCHES = "tests/referee/test_match.py"
FORGED_RACES = "tests/referee/test_verify_races.py"
RACES = tuple(f"tests/referee/test_race{part}.py" for part in ("", "_answers", "_clocks", "_rounds"))
FORGED = "tests/referee/test_verify_forged.py"
WAITED_FOR = "tests/server/test_store_sentinel.py::test_what_only_the_primary_has_does_not_count"
HELD = "tests/server/test_store_held.py"
JOURNALS = "tests/server/test_store_journal.py"


@dataclass(frozen=True)
class Fault:
    """One change that must not go unnoticed."""

    name: str
    file: str
    old: str
    """Stands in the file exactly once."""
    new: str
    suites: tuple[str, ...]
    """What pytest is to run."""
    is_short: bool = False
    """Whether it is planted by `make test` too."""


FAULTS: tuple[Fault, ...] = (
    # The journal comes first
    Fault(
        "acknowledge before the append",
        TABLE,
        "        self._held, self._asked_s = effects, self._loop.time()\n",
        "        self._perform([each for each in effects if isinstance(each, Accept)])\n        self._held, self._asked_s = effects, self._loop.time()\n",
        (TABLES,),
        is_short=True,
    ),
    Fault(
        "rejection before the append",
        TABLE,
        "        self._held, self._asked_s = effects, self._loop.time()\n",
        "        self._perform([each for each in effects if isinstance(each, Reject)])\n        self._held, self._asked_s = effects, self._loop.time()\n",
        (TABLES,),
    ),
    Fault(
        "a view of an unjournaled state",
        MATCH,
        "state = self._shown or self._confirmed.state",
        "state = self._shown or self._position.state",
        (TABLES,),
        is_short=True,
    ),
    Fault(
        "an update of an unjournaled prompt",
        MATCH,
        "        position = self._confirmed\n        prompt, own",
        "        position = self._position\n        prompt, own",
        (TABLES,),
    ),
    Fault(
        "two appends of a match in flight",
        TABLE,
        "while self._inbox and self._held is None and not",
        "while self._inbox and not",
        (TABLES,),
    ),
    Fault(
        "a gap in the journal, by the referee",
        "referee/seatwise_referee/deciding.py",
        '"seq": self._position.seq + 1,',
        '"seq": self._position.seq + 1 + (self._position.seq == 5),',
        (TABLES,),
        is_short=True,
    ),
    Fault(
        "a gap in the journal, by the store",
        f"{SCRIPTS}/append.lua",
        "if last == first - 1 then",
        "if last <= first - 1 then",
        (JOURNALS,),
        is_short=True,
    ),
    Fault(
        "no fence check: epoch",
        f"{SCRIPTS}/append.lua",
        "if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then return 0 end",
        "if fence[3] then return 0 end",
        (JOURNALS,),
        is_short=True,
    ),
    Fault(
        "no fence check: a retired match",
        f"{SCRIPTS}/append.lua",
        "or fence[2] ~= ARGV[2] or fence[3] then return 0 end",
        "or fence[2] ~= ARGV[2] then return 0 end",
        (JOURNALS,),
    ),
    Fault(
        "no fence check: retiring",
        f"{SCRIPTS}/retire.lua",
        "if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] then return 0 end",
        "",
        (JOURNALS,),
    ),
    Fault(
        "no fence check: two claimers",
        f"{SCRIPTS}/claim.lua",
        "if epoch == expected and",
        "if epoch >= expected and",
        (JOURNALS,),
    ),
    Fault(
        "no fence check: the table goes on",
        TABLE,
        "        if not answer.is_kept:\n",
        "        if False:\n",
        (TABLES,),
    ),
    Fault(
        "a repeated append is taken for a foreign one",
        f"{SCRIPTS}/append.lua",
        "return 2",
        "return 0",
        (JOURNALS,),
    ),
    Fault(
        "other bytes pass for a repeat",
        f"{SCRIPTS}/append.lua",
        "  if held[i][2][2] ~= ARGV[3 + i] then return 0 end\n",
        "",
        (JOURNALS,),
    ),
    Fault(
        "an error of the store passes for an answer",
        FLUSHER,
        "            reply = Answer.FENCED\n        if reply < 0:",
        "            reply = Answer.OK\n        if reply < 0:",
        ("tests/server/test_store_flusher.py",),
    ),
    Fault(
        "an outage repeats what was answered",
        "server/seatwise_server/store/courier.py",
        "batch[len(replies) :] + self._queue, []",
        "batch[len(replies) // 2 :] + self._queue, []",
        ("tests/server/test_store_flusher.py",),
    ),
    Fault(
        "few replicas pass for enough",
        "server/seatwise_server/store/courier.py",
        "            if count < self._wait.replicas:\n",
        "            if False:\n",
        (WAITED_FOR,),
    ),
    Fault(
        "a repeat counts although no replica has it",
        f"{SCRIPTS}/append.lua",
        "redis.call('HSET', KEYS[1], 'owner', ARGV[2])",
        "",
        (WAITED_FOR,),
    ),
    Fault(
        "a journal that went backwards stays so",
        FLUSHER,
        "        for match in self._held.keys() - self._lines.keys():\n",
        "        for match in ():\n",
        (HELD,),
    ),
    Fault(
        "a lost claim is made again silently",
        f"{SCRIPTS}/append.lua",
        "if tonumber(fence[1] or '0') < tonumber(ARGV[1]) then return 3 end\n",
        "if tonumber(fence[1] or '0') < tonumber(ARGV[1]) then\n"
        "  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'owner', ARGV[2])\n"
        "  fence = {ARGV[1], ARGV[2], false}\nend\n",
        (HELD,),
    ),
    Fault(
        "a claim made again has an epoch that was in use",
        f"{SCRIPTS}/reclaim.lua",
        "string.format('%d', held + 1)",
        "string.format('%d', held)",
        (HELD,),
    ),
    # Each command once, in order, and not without bound
    Fault(
        "no dedupe of request ids",
        MATCH,
        "if answer is None or (answer.prompt, answer.request_id) != (prompt, request_id):",
        "if True:",
        (TABLES,),
        is_short=True,
    ),
    Fault(
        "a repeat is looked for by its id alone",
        MATCH,
        "(answer.prompt, answer.request_id) != (prompt, request_id)",
        "answer.request_id != request_id",
        (TABLES,),
    ),
    Fault(
        "arrival order",
        TABLE,
        "self._inbox.append((seat, command, at))",
        "self._inbox.appendleft((seat, command, at))",
        (TABLES,),
    ),
    Fault(
        "charged by when it was read",
        TABLE,
        "self._write(self._effects_of(command, self._ms(at)))",
        "self._write(self._effects_of(command, self._ms(self._loop.time())))",
        (TABLES,),
    ),
    Fault(
        "an unbounded inbox",
        TABLE,
        "if place.waiting < MOST_WAITING:",
        "if True:",
        (TABLES,),
    ),
    Fault(
        "an unbounded outbox",
        OUTBOX,
        "if len(self._answers) >= MOST_ANSWERS:",
        "if False:",
        ("tests/server/test_outbox.py",),
        is_short=True,
    ),
    Fault(
        "a reader that never stops",
        "server/seatwise_server/rpc/play.py",
        "if stream.outbox.is_full:",
        "if False:",
        ("tests/server/test_stream.py",),
    ),
    Fault(
        "questions to the store without bound",
        INTAKE,
        "if stream.lookups >= MOST_LOOKUPS:",
        "if False:",
        ("tests/server/test_intake.py",),
    ),
    Fault(
        "closed tables are remembered",
        OUTBOX,
        "        self.seats.pop((table, seat), None)\n",
        "",
        (TABLES,),
    ),
    Fault(
        "every view, not the latest",
        OUTBOX,
        "        views, self._views = self._views, {}\n",
        "        views = self._views\n",
        ("tests/server/test_outbox.py",),
    ),
    Fault(
        "the end before the last view",
        OUTBOX,
        "        draft = Draft(items=self._answers)\n",
        "        draft = Draft(items=[*self._ends.values(), *self._answers])\n        self._ends = {}\n",
        ("tests/server/test_outbox.py",),
    ),
    Fault(
        "a prompt that waits for the sweep",
        TABLE,
        "outbox.show(self, seat, at_once=True)",
        "outbox.show(self, seat, at_once=False)",
        (TABLES,),
    ),
    Fault(
        "a slow reader is kept",
        STREAM,
        "if self._write_began is not None and",
        "if self._write_began is None and",
        ("tests/server/test_stream.py",),
    ),
    Fault(
        "speaking without a lease",
        STREAM,
        "        if not self._may_speak():\n",
        "        if False:\n",
        ("tests/server/test_stream.py",),
    ),
    Fault(
        "a lease that counts from the answer",
        "server/seatwise_server/play/lease.py",
        "self._until = max(self._until, sent + self._certain_s)",
        "self._until = max(self._until, self._clock() + self._certain_s)",
        ("tests/server/test_leases.py",),
    ),
    Fault(
        "a lease that a heartbeat brings back",
        "server/seatwise_server/play/lease.py",
        "            self._holds = False\n            self.lapses += 1\n            self.silent_since = self._until\n",
        "            self._holds = True\n            self.lapses += 1\n            self.silent_since = self._until\n",
        ("tests/server/test_leases.py",),
    ),
    Fault(
        "an owner that came to life again is not noticed",
        f"{SCRIPTS}/claim.lua",
        "if epoch == expected and (ARGV[3] == '' or ARGV[3] == (fence[4] or '0')) then",
        "if epoch == expected then",
        ("tests/server/test_leases.py", JOURNALS),
    ),
    Fault(
        "an older stream is not replaced",
        "server/seatwise_server/play/streams.py",
        "        if older:\n",
        "        if False:\n",
        ("tests/server/test_stream.py",),
    ),
    # Who may do what
    Fault(
        "anybody's seat",
        TABLE,
        "return 0 <= seat < len(bots) and bots[seat] == bot",
        "return 0 <= seat < len(bots)",
        ("tests/server/test_intake.py",),
    ),
    Fault(
        "moves of a stream that has not sat down",
        TABLE,
        "return self._places[seat].outbox is outbox",
        "return True",
        ("tests/server/test_intake.py",),
    ),
    Fault(
        "a nonce after the first sit",
        MATCH,
        "if not self._position.seats[seat].has_sat and self._position.state is None",
        "if self._position.state is None",
        (MATCHES,),
    ),
    Fault(
        "the seat limit is not enforced",
        f"{SCRIPTS}/seat_reserve.lua",
        "if redis.call('SCARD', KEYS[1]) >= tonumber(most) then return 3 end\n",
        "",
        ("tests/server/test_store_seats.py",),
    ),
    Fault(
        "a seat is counted, not named",
        f"{SCRIPTS}/seat_reserve.lua",
        "if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end\n",
        "",
        ("tests/server/test_store_seats.py",),
    ),
    Fault(
        "a revoked token is not noticed",
        "server/seatwise_server/rpc/keeper.py",
        "for stream in list(self._open if revision != seen else self._fresh):",
        "for stream in list(self._fresh):",
        ("tests/server/test_keeper.py",),
    ),
    Fault(
        "a revoked token still opens",
        f"{SCRIPTS}/bot_token.lua",
        "redis.call('HSET', KEYS[1], 'revoked', '1')",
        "redis.call('HSET', KEYS[1], 'revoked_', '1')",
        ("tests/server/test_store_bots.py",),
    ),
    Fault(
        "bots may create matches",
        "server/seatwise_server/rpc/keeper.py",
        "        if not caller.is_admin:\n",
        "        if False:\n",
        ("tests/server/test_keeper.py",),
    ),
    # Time
    Fault(
        "charge off by the allowance",
        ASKING,
        "max(0, self._used_ms(seat, now) - self.allowance_ms(seat))",
        "max(0, self._used_ms(seat, now))",
        (TABLES,),
    ),
    Fault(
        "the first round trip counts from the second prompt on",
        STREAM,
        "                table.measured(seat, self._round_trips[0])\n",
        "                pass\n",
        ("tests/server/test_table_races.py",),
    ),
    Fault(
        "nobody waits for who is still to be measured",
        ASKING,
        "        return self._time_control.allowance_cap_ms if known_ms is None else known_ms\n",
        "        return known_ms or 0\n",
        RACES,
    ),
    Fault(
        "an allowance without a cap",
        ASKING,
        "max(0, min(allowance_ms, self._time_control.allowance_cap_ms))",
        "max(0, allowance_ms)",
        (TABLES,),
    ),
    Fault(
        "the longest round trip is allowed",
        STREAM,
        "return min(self._round_trips, default=None)",
        "return max(self._round_trips, default=None)",
        ("tests/server/test_stream.py",),
    ),
    Fault(
        "the bank is not drawn",
        "referee/seatwise_referee/clock.py",
        "max(0, charged_ms - self.free_ms[pace])",
        "0",
        ("tests/referee/test_clock.py",),
    ),
    Fault(
        "an uncounted strike",
        POSITION,
        "strikes = late.strikes + position.prompt.fault",
        "strikes = late.strikes",
        (MATCHES,),
        is_short=True,
    ),
    Fault(
        "an uncounted rejection",
        POSITION,
        'rejections=seat.rejections + (entry.reason == "ILLEGAL"),',
        "rejections=seat.rejections,",
        (MATCHES,),
    ),
    Fault(
        "a stall is charged",
        ASKING,
        "self._standstills.append((now - ms, now))",
        "self._standstills.append((now, now))",
        (TABLES,),
    ),
    Fault(
        "a late timer is trusted",
        TABLE,
        "        if not stalled_s:\n",
        "        if True:\n",
        (TABLES,),
    ),
    Fault(
        "a stall that no beat has seen is charged",
        "server/seatwise_server/play/lag.py",
        "        if late > BOUND_S:\n",
        "        if False:\n",
        ("tests/server/test_lag.py",),
    ),
    Fault(
        "time runs out while the store is away",
        TABLE,
        "self._held is None and self._journal.healthy:",
        "self._held is None:",
        (TABLES,),
    ),
    Fault(
        "no frozen clocks after an outage",
        TABLE,
        "        gap_ms = int(gap_s * 1000)\n",
        "        gap_ms = 0\n",
        (TABLES,),
    ),
    Fault(
        "who does not read never starts",
        ASKING,
        "        latest_ms = put_ms + self._time_control.handover_ms\n",
        "        latest_ms = put_ms + 1000 * self._time_control.handover_ms\n",
        (TABLES,),
    ),
    Fault(
        "who is not connected starts late",
        TABLE,
        "            self.handed(seat, prompt.number, 0)\n",
        "            pass\n",
        (TABLES,),
    ),
    Fault(
        "a takeover goes on with the old clocks",
        ASKING,
        "return prompt is None or self._put == (epoch, prompt.number)",
        "return prompt is None or self._put[1] == prompt.number",
        (MATCHES, "tests/referee/test_match_clocks.py"),
    ),
    Fault(
        "a gap is charged: who has yet to come back after a takeover",
        ASKING,
        "        return max(latest_ms, self._back_by_ms) if seat in self._away else latest_ms\n",
        "        return latest_ms\n",
        ("tests/referee/test_match_clocks.py",),
    ),
    # The end
    Fault(
        "result ranks ignore exits",
        "referee/seatwise_referee/ending.py",
        "(1, -rank) if left is None else (0, left.seq)",
        "(1, -rank)",
        ("tests/referee/test_ending.py",),
    ),
    Fault(
        "a fault of ours is not contained",
        TABLE,
        "            self.match = Match(self.match.setup, self.match.position)\n",
        "            raise\n",
        (TABLES,),
    ),
    Fault(
        "the seed of a match is told with its void alone",
        "client_sdk/seatwise/codec/match.py",
        "MatchEnded(result=encode_result(end, chain), seed=seed)",
        "MatchEnded(result=encode_result(end, chain))",
        (TABLES,),
    ),
    # Secrets: one leaked card, or less, for each message type
    Fault(
        "leak in a view: one card of another hand",
        f"{UGO}/view.py",
        "        supply=table.supply,\n",
        "        supply=table.supply + (state.hands[-1] & 1),\n",
        (VIEWS,),
        is_short=True,
    ),
    Fault(
        "leak in a view: an unplayed hand to a spectator",
        f"{UGO}/view.py",
        "hand = 0 if seat is None else state.hands[seat]",
        "hand = state.hands[seat or 0]",
        (VIEWS,),
    ),
    Fault(
        "leak in an update: one card of another hand",
        MATCH,
        "            view=self.view(seat),\n",
        "            view=self.view(Seat(0)),\n",
        (WIRE,),
        is_short=True,
    ),
    Fault(
        "leak in an update: another seat's clock",
        MATCH,
        "            strikes=own.strikes,\n",
        "            strikes=position.seats[0].strikes,\n",
        (WIRE,),
    ),
    Fault(
        "leak in an acceptance: another seat's clock",
        TABLE,
        "item = items.accepted(place.head, it.request_id, it.charged_ms, receipt)",
        "item = items.accepted(place.head, it.request_id, self.match.position.seats[-1].charged_ms, receipt)",
        (WIRE,),
    ),
    Fault(
        "leak in a rejection: one card of another hand",
        MATCH,
        '"this seat is not asked"',
        'f"this seat is not asked {position.state.hands[-1] & 1}"',
        (WIRE,),
    ),
    Fault(
        "leak in a rejection: what others hold",
        f"{UGO}/legality.py",
        "        _refuse_card(move.card, hand, state.trick)\n",
        "        _refuse_card(move.card, hand | state.hands[-1], state.trick)\n",
        (REFUSALS,),
    ),
    Fault(
        "leak in a receipt: rejections of others, in updates",
        MATCH,
        "            seen_seq=position.seen_seq(seat),\n",
        "            seen_seq=position.seq,\n",
        (REJECTED,),
    ),
    Fault(
        "leak in a receipt: rejections of others, in acceptances",
        TABLE,
        "seen_seq = self.match.position.seen_seq(it.seat)",
        "seen_seq = self.match.position.seats[-1].rejected_seq",
        (WIRE,),
    ),
    Fault(
        "leak in a receipt: it is the number",
        RECEIPTS,
        "return mark + self._seal(mark)",
        'return b"%016d" % seq',
        (TABLES,),
    ),
    Fault(
    Fault(
        "a receipt by its place alone: what was lost is not known once others stand there",
        RECEIPTS,
        "blake2b(self._public + entry, key",
        'blake2b(self._public + b"entry", key',
        ("tests/server/test_receipts.py",),
    ),
        "leak in a ping: what a seat holds",
        TABLE,
        "        if place.outbox:\n            item = items.rejected(place.head, request_id, reason, message)\n",
        "        if place.outbox:\n            if self.match.position.state:\n"
        "                place.outbox.answer(items.ping(self.match.position.state.hands[-1] & 1), at_once=True)\n"
        "            item = items.rejected(place.head, request_id, reason, message)\n",
        (WIRE,),
    ),
    Fault(
        "leak in a message's time",
        TABLE,
        "                if is_news:\n",
        "                if self.match.position.state.hands[-1] & 1:\n",
        (WIRE,),
    ),
    Fault(
        "leak in updates: rejections of others",
        TABLE,
        "                if is_news:\n",
        "                if True:\n",
        (REJECTED,),
    ),
    Fault(
        "leak in a race: what another builds",
        "referee/seatwise_referee/games/ubongo/view.py",
        "laid=tuple(map(len, state.layouts)),",
        "laid=tuple(len(each) + sum(it.card for it in each) % 2 for each in state.layouts),",
        (RACE,),
    ),
    Fault(
        "leak in a race: a call that is held back",
        "referee/seatwise_referee/racing.py",
        "        self._callers |= {call.seat}\n",
        "        self._callers |= {call.seat}\n        self._effects.append(Changed(tuple(self._seats(lambda _: True))))\n",
        (RACE,),
    ),
    Fault(
        "leak in a race: a call is shown to be none's turn",
        MATCH,
        "        is_building = seat in self._asking and seat not in self._callers\n",
        "        is_building = seat in self._asking and not self._callers\n",
        (RACE, RACES[0]),
    ),
    Fault(
        "leak in the log: the hands",
        TABLE,
        'self._log.debug("move_rejected", seat=effect.seat, reason=str(effect.reason))',
        'self._log.debug("move_rejected", seat=effect.seat, state=self.match.position.state)',
        (WIRE,),
    ),
    Fault(
        "leak in Watch: one card of a hand",
        WATCH,
        "GAMES[setup.game].view(position.state, None)",
        "GAMES[setup.game].view(position.state, 0)",
        (WIRE,),
    ),
    Fault(
        "leak in Watch: rejections",
        WATCH,
        "        if not isinstance(entry, Rejected):\n",
        "        if True:\n",
        ("tests/server/test_watch.py",),
    ),
    Fault(
        "leak in a match: the seed",
        "server/seatwise_server/resources.py",
        "durability=setup.durability,",
        "durability=setup.seed.hex(),",
        (SECRETS_WIRE,),
    ),
    Fault(
        "leak in an offer: the seed",
        "client_sdk/seatwise/codec/offer.py",
        "        commitment=commitment(setup.seed),\n",
        "        commitment=setup.seed,\n",
        (SECRETS_WIRE,),
    ),
    Fault(
        "leak in a record: what a seat was told",
        "referee/seatwise_referee/journal.py",
        'PRIVATE = frozenset({"message", "request_id", "request_ids"})',
        'PRIVATE = frozenset({"request_id", "request_ids"})',
        ("tests/referee/test_record.py", "tests/referee/test_record_format.py"),
    ),
    # The race
    Fault(
        "a race: calls in the order of their arrival",
        "referee/seatwise_referee/race.py",
        "key=lambda call: (self.charged(call), call.seat)",
        "key=lambda call: (call.came_ms, call.seat)",
        RACES,
        is_short=True,
    ),
    Fault(
        "a race: a layout after the call counts",
        "referee/seatwise_referee/race.py",
        "self._charge(seat, came_ms) <= until.get(seat, charged_ms):",
        "self._charge(seat, came_ms) <= until.get(seat, charged_ms + 50):",
        RACES,
        is_short=True,
    ),
    Fault(
        "a race: a call decided a millisecond too early",
        RACING,
        "        if calls and now > self._release_ms(race, calls[0]):\n",
        "        if calls and now >= self._release_ms(race, calls[0]):\n",
        RACES,
    ),
    Fault(
        "a race: nobody waits for others",
        RACING,
        "        return max(latest, default=AT_ONCE_MS)\n",
        "        return min(latest, default=AT_ONCE_MS)\n",
        RACES,
    ),
    Fault(
        "a race: ties creep along a chain",
        RACING,
        "if race.charged(call) <= first_ms + window_ms]",
        "if race.charged(call) <= first_ms + len(race.calls()) * window_ms]",
        RACES,
    ),
    Fault(
        "a race: everybody waits for who is out",
        RACING,
        "        others = [seat for seat in self._building() if seat not in race.callers]\n",
        "        others = [seat for seat in self._asking if seat not in race.callers]\n",
        RACES,
    ),
    Fault(
        "a race: the bank pays",
        "referee/seatwise_referee/deciding.py",
        "        bank_ms = 0 if prompt.race else self._position.seats[seat].bank_ms\n",
        "        bank_ms = self._position.seats[seat].bank_ms\n",
        RACES,
    ),
    Fault(
        "a race: a new round begins where the last one was won",
        POSITION,
        "race_ms=position.race_ms if is_same else 0)",
        "race_ms=position.race_ms)",
        RACES,
    ),
    Fault(
        "a race: what has waited is charged for it",
        RACING,
        "        came_ms = race.came(seat, now)\n",
        "        came_ms = self._clamped(now)\n",
        RACES,
    ),
    Fault(
        "a race: a call that was sent through a quicker link has no layout",
        RACING,
        "        came_ms = race.came(seat, now)\n",
        "        came_ms = max(now, race._opened_ms)\n",
        RACES,
    ),
    Fault(
        "a race: a standstill counts for what came before it",
        ASKING,
        "sum(max(0, min(now, until) - max(started_ms, since))",
        "sum(max(0, until - max(started_ms, since))",
        RACES,
    ),
    Fault(
        "a race: no lag widens the window",
        TABLE,
        "        self.match.note_lag(self._lag.recent_ms(now))\n",
        "",
        ("tests/server/test_table_races.py",),
    ),
    Fault(
        "a race: a silent seat has no strike",
        POSITION,
        "strikes=own.strikes + (seat in entry.silent),",
        "strikes=own.strikes,",
        RACES,
    ),
    Fault(
        "a race: who leaves loses what was laid",
        "referee/seatwise_referee/deciding.py",
        "        return [] if lay is None else [lay]\n",
        "        return []\n",
        RACES,
    ),
    Fault(
        "a race: what breaks a tie is forgotten in the result",
        "referee/seatwise_referee/deciding.py",
        "        ranks = result_ranks(outcome.ranks, [own.left for own in seats])\n",
        "        ranks = result_ranks([-each for each in outcome.points], [own.left for own in seats])\n",
        RACES,
    ),
    Fault(
        "an uncounted touch",
        "referee/seatwise_referee/games/ubongo/geometry.py",
        "if first < 0 or others[first] != own[meets_first] or others[second] != own[meets_second]:",
        "if first >= 0 and (others[first] != own[meets_first] or others[second] != own[meets_second]):",
        ("tests/referee/test_ubongo_geometry.py",),
    ),
    Fault(
        "verify: any window is wide enough",
        f"{VERIFY}/races.py",
        "    _check_window(entry, race.limits)\n",
        "",
        (FORGED_RACES,),
    ),
    Fault(
        "verify: calls in any order",
        f"{VERIFY}/races.py",
        "    _check_order(entry)\n",
        "",
        (FORGED_RACES,),
    ),
    Fault(
        "verify: who had left may still lay",
        f"{VERIFY}/defaults.py",
        "left.seq < absence.question.opened_seq",
        "left.seq < 0",
        (FORGED_RACES,),
    ),
    # The rules
    Fault(
        "a wrong farmer for the winner",
        f"{UGO}/tricks.py",
        "_GAIN_OF_WINNER: Final = (0, 0, 0, 2, 2, 2, 1, 1, 0)",
        "_GAIN_OF_WINNER: Final = (0, 0, 0, 2, 2, 1, 1, 1, 0)",
        (RULES,),
        is_short=True,
    ),
    Fault(
        "a wrong farmer: lost cards are compared with the led colour",
        f"{UGO}/tricks.py",
        "    best = trick[winner]\n    gain",
        "    best = trick[0]\n    gain",
        (RULES,),
    ),
    Fault(
        "a tenth farmer",
        f"{UGO}/course.py",
        "taken = min(gain, FULL - farmers, supply)",
        "taken = min(gain, FULL + 1 - farmers, supply)",
        (RULES,),
    ),
    Fault(
        "farmers without a supply",
        f"{UGO}/course.py",
        "taken = min(gain, FULL - farmers, supply)",
        "taken = min(gain, FULL - farmers)",
        (RULES,),
    ),
    Fault(
        "the last of equals wins",
        f"{UGO}/tricks.py",
        "return trick.index(max(trick, key=strength.__getitem__))",
        "return trick.index(max(reversed(trick), key=strength.__getitem__))",
        (RULES,),
    ),
    Fault(
        "colours need not be followed",
        f"{UGO}/tricks.py",
        "return (trick and hand & COLOUR_MASKS[trick[0] // VALUES]) or hand",
        "return hand",
        (RULES,),
    ),
    Fault(
        "a missing farmer costs nothing",
        f"{UGO}/kingdoms.py",
        "return MISSING_FARMER * missing if missing else top.value",
        "return 0 if missing else top.value",
        (RULES,),
    ),
    Fault(
        "another shuffle",
        "referee/seatwise_referee/shuffle.py",
        'return sha256(seed + b"".join(nonce or NO_NONCE for nonce in nonces)).digest()',
        'return sha256(b"".join(nonce or NO_NONCE for nonce in nonces) + seed).digest()',
        ("tests/referee/test_shuffle.py",),
    ),
    # verify skips a check
    Fault(
        "verify: charges",
        f"{VERIFY}/clocks.py",
        "    if times.charged_ms != charge:\n",
        "    if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: moves that came too late",
        f"{VERIFY}/clocks.py",
        "    if times.charged_ms > limits.allowed_ms(pace, bank_ms):\n",
        "    if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: time-outs with time left",
        f"{VERIFY}/clocks.py",
        "    if times.charged_ms <= limits.allowed_ms(pace, bank_ms):\n",
        "    if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: the commitment",
        f"{VERIFY}/header.py",
        'if commitment(bytes.fromhex(record["seed"])).hex() != record["commitment"]:',
        "if False:",
        (FORGED,),
    ),
    Fault(
        "verify: deals",
        f"{VERIFY}/header.py",
        "    if canonical(found) == canonical(given):  # not `==`, to which `true` is 1\n        return\n",
        "    return\n",
        (FORGED,),
    ),
    Fault(
        "verify: nonces",
        f"{VERIFY}/header.py",
        "        if sat is not None and sat.nonce != nonce:\n",
        "        if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: ranks",
        f"{VERIFY}/finish.py",
        "        if found != right:\n",
        "        if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: what the referee owes",
        f"{VERIFY}/course.py",
        "        if not owed.is_paid_by(entry):\n",
        "        if False:\n",
        (FORGED,),
    ),
    # The bot's side
    Fault(
        "the SDK hears an owner whose time is over",
        f"{LINK}/seat.py",
        "        if 0 < epoch < seen:\n",
        "        if False:\n",
        ("tests/client_sdk/test_link.py",),
    ),
    Fault(
        "the SDK does not check the commitment",
        f"{LINK}/seat.py",
        "if result.seed and sha256(result.seed).digest() != self.offer.commitment:",
        "if False:",
        ("tests/client_sdk/test_link.py",),
    ),
    # Who may import whom
    Fault(
        "the referee reads a clock",
        MATCH,
        "from collections.abc import Iterable\n",
        "import time\nfrom collections.abc import Iterable\n",
        ("tests/contract/test_layers.py",),
    ),
    Fault(
        "a table knows the transport",
        TABLE,
        "import structlog\n",
        "import grpc\nimport structlog\n",
        ("tests/contract/test_layers.py",),
    ),
    Fault(
        "a bot needs the server's libraries",
        "client_sdk/seatwise/result.py",
        "from __future__ import annotations\n",
        "from __future__ import annotations\n\nimport structlog\n",
        ("tests/contract/test_layers.py",),
    ),
    # Sets of duplicate deals
    Fault(
        "leak in a set: the seed when one match is over",
        "server/seatwise_server/play/delivery.py",
        'seed = b"" if setup.deal_set else setup.seed',
        "seed = setup.seed",
        (SECRETS_WIRE,),
        is_short=True,
    ),
    Fault(
        "leak in a set: records before the last match is over",
        "server/seatwise_server/rpc/sets.py",
        "if name and not await self.store.sets.is_over(name):",
        "if name and await self.store.sets.get(name) is None:",
        ("tests/server/test_sets.py",),
    ),
    Fault(
        "a set is over before its last match",
        f"{SCRIPTS}/set_end.lua",
        "if ended ~= (closed and (joined or '0') or size) then return 0 end",
        "if ended ~= (joined or '0') then return 0 end",
        ("tests/server/test_store_sets.py",),
    ),
    Fault(
        "a set: bots add to the deal",
        MATCH,
        "counts = nonce and len(nonce) == NONCE_BYTES and not self.setup.deal_set",
        "counts = nonce and len(nonce) == NONCE_BYTES",
        ("tests/referee/test_sets.py",),
    ),
    Fault(
        "a set: any seed goes for a record",
        f"{VERIFY}/header.py",
        'if seed_in_set(named.seed, named.number).hex() != record["seed"]:',
        "if named.number < 1:",
        ("tests/referee/test_sets.py",),
    ),
    # Ladders
    Fault(
        "a ladder: a result that is delivered twice counts twice",
        f"{SCRIPTS}/result_append.lua",
        "if place then return tonumber(place) end",
        "",
        ("tests/server/test_store_results.py",),
        is_short=True,
    ),
    Fault(
        "a ladder: void matches count",
        "server/seatwise_server/play/delivery.py",
        "if setup.competition and not end.void_reason:",
        "if setup.competition:",
        ("tests/server/test_delivery.py",),
    ),
    Fault(
        "a ladder: what a dead owner left of a delivery is left",
        "server/seatwise_server/play/delivery.py",
        'if meta and "result" in meta.fields:\n            await self._conclude',
        'if meta and "result" not in meta.fields:\n            await self._conclude',
        ("tests/server/test_delivery.py",),
    ),
    Fault(
        "a ladder: bots are free before their result counts",
        "server/seatwise_server/lobby/ladders.py",
        "        await held.book.catch_up()\n",
        "",
        ("tests/server/test_ladder_pairing.py",),
    ),
    Fault(
        "a ladder: an older table replaces a newer one",
        f"{SCRIPTS}/ladder_publish.lua",
        "if shown and tonumber(shown) > tonumber(ARGV[1]) then return 0 end",
        "",
        ("tests/server/test_ladder_table.py::test_an_older_table_does_not_replace_a_newer_one",),
    ),
)
