"""The faults that are planted, one at a time: each a change of a few words, and the suite that must notice it."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "server/seatwise_server/play/table.py"
QUEUE = "server/seatwise_server/play/table.py"
SEAT_UPDATES = "server/seatwise_server/play/seat_updates.py"
STANDSTILLS = "server/seatwise_server/play/match_clock.py"
INTAKE = "server/seatwise_server/play/inbound.py"
WATCH = "server/seatwise_server/play/spectating.py"
SCRIPTS = "server/seatwise_server/store/scripts"
FLUSHER = "server/seatwise_server/store/group_commit/writer.py"
MATCH = "referee/seatwise_referee/match.py"
RACE_PROMPT = "referee/seatwise_referee/race_prompt.py"
MIXED_MOVE = "referee/seatwise_referee/mixed_move.py"
MIXED_MOVES = "tests/referee/test_mixed_moves.py"
UGO = "referee/seatwise_referee/games/ugo"
VERIFY = "referee/seatwise_referee/verify"
LINK = "client_sdk/seatwise/link"

TABLES = "tests/server/play/test_table.py"
WIRE = (
    "tests/contract/test_non_interference_wire.py::test_a_seat_is_sent_the_same_bytes_whatever_it_cannot_know"
)
REJECTED = "tests/contract/test_non_interference_wire.py::test_the_rejections_of_others_leave_no_trace"
RACE = "tests/contract/test_non_interference_race.py"
VIEWS = "tests/contract/test_secrets.py::test_a_view_is_the_same_whatever_its_seat_cannot_know[ugo-2]"
SECRETS_WIRE = "tests/contract/test_secrets_wire.py"
RACES = tuple(f"tests/referee/test_race{part}.py" for part in ("", "_answers", "_clocks", "_rounds"))
FORGED = "tests/referee/test_verify_forged.py"
WAITED_FOR = "tests/server/store/test_store_nodes.py::test_an_entry_that_only_the_primary_has_does_not_count"
COMPETITION = "server/seatwise_server/competition"
SIMULATION = "tests/simulation/test_simulation.py::test_nothing_is_wrong_in_the_first_worlds"
BOTS_STORED = "tests/server/store/test_store_bots.py"
HOSTILE = "tests/referee/test_verify_hostile.py"
BUNDLES = "tests/league/test_bundle.py"
JOURNALS = "tests/server/store/test_store_journal.py"
PROPOSALS = "tests/server/lobby/test_proposals.py"
AUDIT_LOG = "tests/server/store/test_audit_log.py"

REST = "server/seatwise_server/rest"
ENCRYPTION = "tests/client_sdk/test_encryption.py"
OWNER_QUOTAS = "tests/server/lobby/test_owner_quotas.py"
TRANSPORT = "tests/server/play/test_transport_lag.py"
WITHHELD = "tests/server/play/test_withheld_results.py"
ENDPOINT = "tests/client_sdk/test_endpoint.py"
PUSHED = "server/seatwise_server/play/play_stream.py"


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


FAULTS: tuple[Fault, ...] = (
    # Mixed moves
    Fault(
        "a draw that needs no nonce of the bots",
        MIXED_MOVE,
        "deal_seed(setup.seed, nonces)",
        "deal_seed(setup.seed, ())",
        (MIXED_MOVES,),
    ),
    Fault(
        "choices with a move beside them",
        INTAKE,
        '    if asked.WhichOneof("move") is not None:\n        raise MalformedMove("the item has a move and choices; it must have one of them")\n',
        "",
        ("tests/server/play/test_inbound.py",),
    ),
    # The journal comes first
    Fault(
        "acknowledge before the append",
        QUEUE,
        "        self._held, self._entries, self._asked_s = effects, entries, self._clock.now\n",
        (
            '        self.updates.perform_effects([each for each in effects if type(each).__name__ == "AcceptMove"])\n        self._held, self._entries, self._asked_s = effects, entries, self._clock.now\n'
        ),
        (TABLES,),
    ),
    Fault(
        "a view of an unjournaled state",
        MATCH,
        "self._race.shown_state if self._race else self._confirmed.state",
        "self._race.shown_state if self._race else self._decision.position.state",
        (TABLES,),
    ),
    Fault(
        "a gap in the journal, by the store",
        f"{SCRIPTS}/append.lua",
        "if last == first - 1 then",
        "if last <= first - 1 then",
        (JOURNALS,),
    ),
    Fault(
        "no fence check: epoch",
        f"{SCRIPTS}/append.lua",
        "if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then",
        "if fence[3] then",
        (JOURNALS,),
    ),
    Fault(
        "no fence check: an entry without the script",
        f"{SCRIPTS}/claim.lua",
        "if newest and expected > 0 then",
        "if false then",
        (JOURNALS,),
    ),
    Fault(
        "after a pause no journal is looked at",
        "server/seatwise_server/store/group_commit/node_writer.py",
        "silent_s > LONGEST_PAUSE_S or",
        "",
        ("tests/server/store/test_store_held.py",),
    ),
    Fault(
        "no fence check: a retired match",
        f"{SCRIPTS}/append.lua",
        "or fence[2] ~= ARGV[2] or fence[3] then",
        "or fence[2] ~= ARGV[2] then",
        (JOURNALS,),
    ),
    Fault(
        "the fence is set after the journal was read",
        "server/seatwise_server/store/redis/scripts.py",
        "return await client.call_many([*_with_sources(calls), *commands])",
        "return (await client.call_many([*commands, *_with_sources(calls)]))[::-1]",
        ("tests/server/play/test_leases.py",),
    ),
    Fault(
        "no fence check: the table goes on",
        QUEUE,
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
        "an error of the store passes for an answer",
        FLUSHER,
        ("            reply = AppendResult.FENCED\n        if reply < 0:"),
        ("            reply = AppendResult.OK\n        if reply < 0:"),
        ("tests/server/store/test_store_flusher.py",),
    ),
    Fault(
        "an outage repeats what was answered",
        "server/seatwise_server/store/group_commit/node_writer.py",
        "batch[len(replies) :] + self._queue, []",
        "batch[len(replies) // 2 :] + self._queue, []",
        ("tests/server/store/test_store_flusher.py",),
    ),
    Fault(
        "few replicas pass for enough",
        "server/seatwise_server/store/group_commit/node_writer.py",
        "            if count < self._wait.replicas:\n",
        "            if False:\n",
        (WAITED_FOR,),
    ),
    Fault(
        "verify: brackets as deep as they like",
        f"{VERIFY}/reading.py",
        ", default=0) > MOST_DEPTH:\n",
        ", default=0) > 10**9:\n",
        (HOSTILE,),
    ),
    Fault(
        "verify: brackets are counted within texts",
        f"{VERIFY}/reading.py",
        'b"".join(data.split(b\'"\')[::2])',
        "data",
        (HOSTILE,),
    ),
    Fault(
        "verify: a terminal is given what a bundle holds",
        "client_sdk/seatwise/season/bundle.py",
        "super().__init__(escape_text(text))",
        "super().__init__(text)",
        (BUNDLES,),
    ),
    Fault(
        "verify: a file of a bundle lies before its beginning",
        "client_sdk/seatwise/season/bundle.py",
        "whence == os.SEEK_SET and offset < 0",
        "whence == os.SEEK_SET and offset < -(1 << 60)",
        (BUNDLES,),
    ),
    Fault(
        "verify: a match at a server says that its times are those of a local table",
        f"{VERIFY}/header.py",
        'if record["durability"] != "none" or',
        "if",
        (FORGED,),
    ),
    Fault(
        "texts in requests give orders to terminals",
        "server/seatwise_server/services/request_fields.py",
        "    if place:\n",
        "    if False:\n",
        ("tests/server/services/test_bad_calls.py",),
    ),
    Fault(
        "the name of a deleted bot is given again",
        f"{SCRIPTS}/bot_register.lua",
        "if redis.call('HEXISTS', KEYS[1], 'deleted_ms') == 1 then return 3 end\n",
        "",
        (BOTS_STORED,),
    ),
    Fault(
        "the owner of a deleted bot is kept",
        f"{SCRIPTS}/bot_delete.lua",
        ", 'owner', '')",
        ")",
        (BOTS_STORED,),
    ),
    # Each command once, in order, and not without bound
    Fault(
        "an owner that came to life again is not noticed",
        f"{SCRIPTS}/claim.lua",
        "if epoch == expected and (ARGV[3] == '' or ARGV[3] == (fence[4] or '0')) then",
        "if epoch == expected then",
        ("tests/server/play/test_leases.py", JOURNALS),
    ),
    # Who may do what
    Fault(
        "anybody's seat",
        TABLE,
        "return 0 <= seat < len(bots) and bots[seat] == bot",
        "return 0 <= seat < len(bots)",
        ("tests/server/play/test_inbound.py",),
    ),
    Fault(
        "an expired access token still opens",
        "server/seatwise_server/store/tokens.py",
        "if stored.expire_ms and left_ms <= 0:",
        "if False:",
        ("tests/server/store/test_access_tokens.py",),
    ),
    Fault(
        "two writers of the audit log overwrite each other",
        f"{SCRIPTS}/audit_append.lua",
        "if seq ~= tonumber(ARGV[1]) then return 0 end",
        "",
        (AUDIT_LOG,),
    ),
    Fault(
        "an owner that is erased while it changes something is there again",
        f"{SCRIPTS}/owner_request.lua",
        "if not found[1] or (most",
        "if (most",
        ("tests/server/services/test_owners.py",),
    ),
    # Time
    Fault(
        "pongs count in a race for a rating",
        SEAT_UPDATES,
        "return bool(self.match.setup.competition) and prompt is not None and prompt.race",
        "return False",
        ("tests/server/play/test_table_races.py",),
    ),
    Fault(
        "who is not connected starts late",
        SEAT_UPDATES,
        "            self.on_prompt_delivered(seat, prompt.number, 0)\n",
        "            pass\n",
        (TABLES,),
    ),
    # The end
    Fault(
        "two lobbies seat matches at the same last table",
        "server/seatwise_server/store/scripts/job_push.lua",
        "if unfinished >= tonumber(ARGV[4]) then return 0 end",
        "if unfinished > tonumber(ARGV[4]) then return 0 end",
        ("tests/server/lobby/test_proposals.py",),
    ),
    Fault(
        "a value of a game from outside may end the process by its text",
        "referee/seatwise_referee/hosted/hosted_rules.py",
        "    except (IllegalMove, BadOptions, KeyboardInterrupt):\n",
        "    except (IllegalMove, BadOptions, KeyboardInterrupt, SystemExit):\n",
        ("tests/hosted/test_check_game.py",),
    ),
    Fault(
        "a spectator is shown a game from outside whose secrets nobody can check",
        "server/seatwise_server/play/game_views.py",
        'kit.game.game.can_resample() and report.secrets in ("checked", NOTHING_HIDDEN)',
        "True",
        ("tests/contract/test_non_interference_hosted.py",),
    ),
    Fault(
        "a spectator learns that a seat has chosen before all have",
        "client_sdk/seatwise/replay/frame_builder.py",
        "            is_same\n            and self._viewpoint != ALL_OPEN",
        "            False\n            and self._viewpoint != ALL_OPEN",
        ("tests/hosted/test_hooks.py",),
    ),
    Fault(
        "an illegal move reaches the code of a game from outside",
        "referee/seatwise_referee/hosted/hosted_rules.py",
        "not isinstance(move, HostedMove) or not view.has_more_moves",
        "not isinstance(move, HostedMove)",
        ("tests/hosted/test_hosted_rules.py",),
    ),
    # Secrets: one leaked card, or less, for each message type
    Fault(
        "leak in a view: one card of another hand",
        f"{UGO}/view.py",
        "        table.supply,\n",
        "        table.supply + (state.hands[-1] & 1),\n",
        (VIEWS,),
    ),
    Fault(
        "leak in an update: one card of another hand",
        MATCH,
        "            self.view_for(seat),\n",
        "            self.view_for(Seat(0)),\n",
        (WIRE,),
    ),
    Fault(
        "leak in an update: another seat's clock",
        MATCH,
        "            own.strikes,\n",
        "            position.seats[0].strikes,\n",
        (WIRE,),
    ),
    Fault(
        "leak in an acceptance: another seat's clock",
        SEAT_UPDATES,
        "it.request_id, it.charged_ms, receipt)",
        "it.request_id, self.match.position.seats[-1].charged_ms, receipt)",
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
        "leak in a receipt: rejections of others, in updates",
        MATCH,
        "            position.seen_seq(seat),\n",
        "            position.seq,\n",
        (REJECTED,),
    ),
    Fault(
        "leak in a receipt: rejections of others, in acceptances",
        SEAT_UPDATES,
        "receipt_of(self.match.position.seen_seq(it.seat))",
        "receipt_of(self.match.position.seats[-1].rejected_seq)",
        (TABLES,),
    ),
    Fault(
        "leak in a ping: what a seat holds",
        SEAT_UPDATES,
        "            item = play_messages.encode_rejected(link.head, request_id, reason, message)\n",
        "            if self.match.position.state:\n                link.outbox.add_answer(play_messages.encode_ping(self.match.position.state.hands[-1] & 1), at_once=True)\n            item = play_messages.encode_rejected(link.head, request_id, reason, message)\n",
        (WIRE,),
    ),
    Fault(
        "leak in a message's time",
        SEAT_UPDATES,
        " and after.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat)):\n",
        " and after.state.hands[-1] & 1:\n",
        (WIRE,),
    ),
    Fault(
        "leak in updates: rejections of others",
        SEAT_UPDATES,
        " and after.seen_seq(Seat(seat)) > before.seen_seq(Seat(seat)):\n",
        ":\n",
        (REJECTED,),
    ),
    Fault(
        "leak in a race: a call that is held back",
        RACE_PROMPT,
        "        self.hidden_callers |= {call.seat}\n",
        "        self.hidden_callers |= {call.seat}\n        self._decision.effects.append(ShowChange(tuple(self._building_seats())))\n",
        (RACE,),
    ),
    Fault(
        "leak in a race: a call is shown to be none's turn",
        MATCH,
        "        return self._race is not None and seat in self._race.hidden_callers\n",
        "        return self._race is not None and bool(self._race.hidden_callers)\n",
        (RACE, RACES[0]),
    ),
    Fault(
        "leak in the log: the hands",
        SEAT_UPDATES,
        'self._log.debug("move_rejected", seat=effect.seat, reason=str(effect.reason))',
        'self._log.debug("move_rejected", seat=effect.seat, state=self.match.position.state)',
        (WIRE,),
    ),
    Fault(
        "leak in Watch: one card of a hand",
        WATCH,
        "game.view(position.state, None)",
        "game.view(position.state, 0)",
        (WIRE,),
    ),
    Fault(
        "leak in an offer: the seed",
        "server/seatwise_server/play/seat_offers.py",
        "        commitment=commitment_to(setup.seed),\n",
        "        commitment=setup.seed,\n",
        (SECRETS_WIRE,),
    ),
    Fault(
        "leak in a record: what a seat was told",
        "referee/seatwise_referee/journal.py",
        'PRIVATE_FIELDS = frozenset({"message", "request_id", "request_ids"})',
        'PRIVATE_FIELDS = frozenset({"request_id", "request_ids"})',
        ("tests/referee/test_record.py", "tests/referee/test_record_format.py"),
    ),
    # The race
    Fault(
        "a race: a call that was sent through a quicker link has no layout",
        RACE_PROMPT,
        "        came_ms = race.note_arrival(seat, now)\n",
        "        came_ms = max(now, race._opened_ms)\n",
        RACES,
    ),
    # The rules
    # verify skips a check
    Fault(
        "verify: moves that came too late",
        f"{VERIFY}/charges.py",
        "    if (times.charged_ms > allowed_ms) is not is_over:\n",
        "    if False:\n",
        (FORGED,),
    ),
    Fault(
        "verify: the commitment",
        f"{VERIFY}/header.py",
        'if commitment_to(bytes.fromhex(record["seed"])).hex() != record["commitment"]:',
        "if False:",
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
        "verify: a truth value is a number of a move",
        f"{VERIFY}/shape.py",
        "if {*map(type, numbers)} != _INTEGERS_ONLY or min(numbers) < 0:",
        "if min(numbers) < 0:",
        ("tests/referee/test_verify_moves.py",),
    ),
    Fault(
        "verify: the seats of moves that are read without JSON are not checked",
        f"{VERIFY}/verdict.py",
        "            check_seat(body.seat, seats)\n",
        "",
        ("tests/referee/test_verify_plain_moves.py",),
    ),
    # Who may import whom
    # Sets of duplicate deals
    Fault(
        "leak in a set: the seed when one match is over",
        "server/seatwise_server/play/delivery.py",
        'seed = b"" if setup.deal_set else setup.seed',
        "seed = setup.seed",
        (SECRETS_WIRE,),
    ),
    # Ladders
    Fault(
        "a ladder: a result that is delivered twice counts twice",
        f"{SCRIPTS}/result_append.lua",
        "if place then return tonumber(place) end",
        "",
        ("tests/server/store/test_store_results.py",),
    ),
    Fault(
        "a ladder: an older table replaces a newer one",
        f"{SCRIPTS}/ladder_publish.lua",
        "if shown and tonumber(shown) > tonumber(ARGV[1]) then return 0 end",
        "",
        ("tests/server/lobby/test_ladder_table.py::test_an_older_table_does_not_replace_a_newer_one",),
    ),
    # Leagues
    Fault(
        "a league: a result need not be what its record says",
        "client_sdk/seatwise/season/checking.py",
        "if result.get(key) != right:",
        "if key not in result:",
        ("tests/league/test_bundle.py",),
    ),
    # Arithmetic on results
    Fault(
        "arithmetic: a result that is read twice counts twice",
        f"{COMPETITION}/ratings/openskill_ratings.py",
        "if result.seq <= self.seq:",
        "if result.seq < 0:",
        ("tests/competition/test_ratings.py",),
    ),
    # What the simulation found, and what it must find
    Fault(
        "in the simulation: a referee that dies between freeing the bots and counting for their owners leaks a match",
        "server/seatwise_server/store/seats.py",
        "return {name for _, owner in answers if (name := owner.decode()).startswith(OWNERS_PREFIX)}",
        "return {name for held, owner in answers if held and (name := owner.decode()).startswith(OWNERS_PREFIX)}",
        (
            "tests/simulation/test_failpoints.py::test_an_owner_has_room_again_wherever_a_process_is_killed_that_counts_its_matches",
        ),
    ),
    Fault(
        "in the simulation: an outage is charged to the bots",
        "server/seatwise_server/play/open_tables.py",
        "            table.resume_after_gap(max(0.0, gap_s))",
        "            pass",
        (SIMULATION,),
    ),
    Fault(
        "a stream that was held up replaces a newer one of its bot",
        "server/seatwise_server/lobby/lobby.py",
        "        if older and older.arrival > attendance.arrival:\n",
        "        if False:\n",
        ("tests/server/lobby/test_lobby_looks.py",),
    ),
    Fault(
        "no-shows: a bot that was not told of its seat is blamed",
        f"{SCRIPTS}/no_show.lua",
        "if not knows or ARGV[3] ~= '1' then return 1 end",
        "if ARGV[3] ~= '1' then return 1 end",
        ("tests/server/store/test_store_no_shows.py",),
    ),
    Fault(
        "no-shows: bots are blamed where only the house waits",
        "server/seatwise_server/play/no_shows.py",
        "if seat not in absent and bot in queued]",
        "if seat not in absent]",
        ("tests/server/lobby/test_no_shows.py",),
    ),
    Fault(
        "a bot whose lease ran out while Redis was away loses its place in the queue",
        "server/seatwise_server/lobby/lobby.py",
        "        if any(found.is_absent for found in room):\n",
        "        if False:\n",
        ("tests/server/lobby/test_lobby_looks.py",),
    ),
    Fault(
        "no-shows: a bot is blamed whose lobby died",
        f"{SCRIPTS}/no_show.lua",
        " and redis.call('EXISTS', KEYS[3]) == 1)",
        ")",
        ("tests/server/store/test_store_no_shows.py",),
    ),
    # Matches stay on the books
    Fault(
        "the bots of a match are free before its result is in the log",
        "server/seatwise_server/store/keeping.py",
        "noted, release_calls(ended.match, ended.bots))",
        "release_calls(ended.match, ended.bots), noted)",
        ("tests/server/play/test_delivery.py",),
    ),
    Fault(
        "a match that an owner has had is dropped",
        f"{SCRIPTS}/match_drop.lua",
        "if is_owned then return 0 end\n",
        "",
        (PROPOSALS,),
    ),
    Fault(
        "a match that was dropped can be claimed",
        f"{SCRIPTS}/match_drop.lua",
        "redis.call('HSET', KEYS[1], 'retired', '1')\n",
        "",
        (PROPOSALS,),
    ),
    Fault(
        "a lobby that comes too late drops what its heir seats",
        f"{SCRIPTS}/match_drop.lua",
        "if is_late then return -1 end\n",
        "",
        (PROPOSALS,),
    ),
    # No token leaves in clear
    Fault(
        "an offer without a scheme is dialed in clear",
        f"{LINK}/endpoint.py",
        "not insecure and (not is_local or (lobby is not None and lobby.is_encrypted))",
        "False",
        (ENDPOINT,),
    ),
    Fault(
        "a name that looks like the loopback is taken for it",
        f"{LINK}/endpoint.py",
        'return host.lower() == "localhost" or ip_address(host).is_loopback',
        'return host.startswith(("localhost", "127."))',
        (ENDPOINT,),
    ),
    Fault(
        "any key is the pinned one",
        f"{LINK}/dialing.py",
        "if security.pins and digest not in security.pins:",
        "if security.pins and not digest:",
        (f"{ENCRYPTION}::test_another_key_than_the_pinned_one_is_refused",),
    ),
    # Floods of calls without a token
    # Delays in gRPC's threads
    Fault(
        "bots are charged for what gRPC held back",
        STANDSTILLS,
        " + self._transport_effects(match, now)",
        "",
        (TRANSPORT,),
    ),
    Fault(
        "a delay of gRPC is taken off with every answer to a prompt",
        STANDSTILLS,
        "        more_ms = behind_ms - self._taken_off_ms\n",
        "        more_ms = behind_ms\n",
        (TRANSPORT,),
    ),
    # Results of running deal sets
    Fault(
        "a match alone withholds no result",
        "server/seatwise_server/services/matches.py",
        "        await self._withheld.withhold_from(caller, [match])\n",
        "",
        (WITHHELD,),
    ),
    Fault(
        "every bot sees withheld results",
        "server/seatwise_server/services/deal_sets.py",
        "(bool(caller.bot) and caller.bot in bots)",
        "bool(caller.bot)",
        (WITHHELD,),
    ),
    Fault(
        "the log tells a withheld result",
        "server/seatwise_server/play/open_tables.py",
        '    if place and end.HasField("result"):\n',
        '    if place and not end.HasField("result"):\n',
        (WITHHELD,),
    ),
    Fault(
        "the bots of an owner play more matches at once than its quota",
        f"{SCRIPTS}/owner_match_open.lua",
        "if most and redis.call('ZCARD', KEYS[2]) >= most then return 3 end",
        "if most and redis.call('ZCARD', KEYS[2]) > most then return 3 end",
        (OWNER_QUOTAS,),
    ),
    Fault(
        "a match that came to nothing counts for the owners of its bots",
        "server/seatwise_server/lobby/seating.py",
        "        await self._quotas.uncount_match(proposal.match, bots, _until_ms(proposal))\n",
        "",
        (OWNER_QUOTAS, PROPOSALS),
    ),
    Fault(
        "a pushed stream speaks without its lease",
        PUSHED,
        "        if not self._may_speak():\n            return\n",
        "",
        ("tests/server/play/test_stream.py::test_a_stream_that_may_not_speak_is_silent_until_it_may_again",),
    ),
    # The REST door
    Fault(
        "a URL without authorization",
        f"{REST}/rest_app.py",
        "authorize_request(self._authenticator, self.operation.method, request)",
        "authorize_request(self._authenticator, '/seatwise.v1.GameService/ListGames', request)",
        ("tests/contract/test_access.py",),
    ),
    Fault(
        "an owner opens a bot again that the operator has shut out",
        f"{SCRIPTS}/bot_token.lua",
        "if found[3] == 'operator' and ARGV[3] == '1' then return 3 end",
        "if found[3] == 'nobody' and ARGV[3] == '1' then return 3 end",
        ("tests/server/store/test_store_bots.py",),
    ),
)
