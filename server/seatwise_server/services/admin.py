"""AdminService: the processes behind the services, for their operators."""

from __future__ import annotations

from seatwise.v1 import admin_service_pb2 as pb
from seatwise_server import resources
from seatwise_server.ladder.ladder_settings import ladder_lease
from seatwise_server.lobby.seating import CREATED, QUEUES, Seating
from seatwise_server.refusal import Refusal
from seatwise_server.services.authentication import Caller
from seatwise_server.services.bots import find_bot
from seatwise_server.services.match_audit import MatchAudit
from seatwise_server.services.request_fields import bad_page_token, check_text, page_size
from seatwise_server.store import Fence, Heartbeat, Job, Store, now_ms
from seatwise_server.store.jobs import is_job_id
from seatwise_server.timings import REFEREE_LEASE_S, REFEREE_SHOWN_SILENT_MS

LONGEST_VOID_REASON = 200
MATCH_LEASE_MS = int(REFEREE_LEASE_S * 1000)
HOUSE_BOTS = "house-bots"
"""The name of the lease to run the house bots, which one process has at a time."""


class AdminService:
    """See admin_service.proto."""

    def __init__(self, store: Store, seating: Seating, audit: MatchAudit) -> None:
        self._store = store
        self._seating = seating
        self._audit = audit

    async def list_referees(self, caller: Caller, request: pb.ListRefereesRequest) -> pb.ListRefereesResponse:
        return pb.ListRefereesResponse(referees=(await self._read_referees()).values())

    async def list_live_matches(
        self, caller: Caller, request: pb.ListLiveMatchesRequest
    ) -> pb.ListLiveMatchesResponse:
        """See admin_service.proto. A page token is the id of the last job shown."""
        if request.page_token and not is_job_id(request.page_token):
            raise bad_page_token()
        size = page_size(request.page_size)
        jobs = await self._store.jobs.list_page(size + 1, request.page_token)
        matches = [_live_match(job, await self._store.journal.read_fence(job.match)) for job in jobs[:size]]
        token = jobs[size - 1].job_id if len(jobs) > size else ""
        return pb.ListLiveMatchesResponse(matches=matches, next_page_token=token)

    async def list_leases(self, caller: Caller, request: pb.ListLeasesRequest) -> pb.ListLeasesResponse:
        leases = [
            pb.Lease(what="matches", holder=each.name, left_ms=max(0, MATCH_LEASE_MS - each.silent_ms))
            for each in (await self._read_referees()).values()
            if each.state != pb.Referee.STATE_STOPPED
        ]
        return pb.ListLeasesResponse(leases=[*leases, *await self._read_work_leases()])

    async def drain_referee(self, caller: Caller, request: pb.DrainRefereeRequest) -> pb.DrainRefereeResponse:
        referee = (await self._read_referees()).get(request.name)
        if referee is None or referee.state == pb.Referee.STATE_STOPPED:
            raise Refusal("NOT_FOUND", f"there is no referee {request.name[:80]!r}", name=request.name[:80])
        await self._store.processes.send_order(request.name.removeprefix("referees/"), b"drain")
        return pb.DrainRefereeResponse(referee=referee)

    async def void_match(self, caller: Caller, request: pb.VoidMatchRequest) -> pb.VoidMatchResponse:
        check_text("reason", request.reason.strip(), LONGEST_VOID_REASON, least=1)
        is_name = request.name.startswith("matches/")
        meta = await self._store.matches.get_meta(request.name) if is_name else None
        if meta is None or "setup" not in meta.fields:
            raise Refusal("NOT_FOUND", f"there is no match {request.name[:80]!r}", name=request.name[:80])
        if "result" not in meta.fields:
            await self._seating.abort_match(request.name, request.reason.strip())
        return pb.VoidMatchResponse(match=resources.match_resource(meta))

    async def forgive_no_shows(
        self, caller: Caller, request: pb.ForgiveNoShowsRequest
    ) -> pb.ForgiveNoShowsResponse:
        known = await find_bot(self._store.bots, request.bot)
        bot = resources.bot_resource(known)
        if off := await self._store.no_shows.read_off_queues(known.bot):
            bot.off_queues.CopyFrom(resources.off_queues(off))
        await self._store.no_shows.forgive(known.bot)
        return pb.ForgiveNoShowsResponse(bot=bot)

    async def check_matches(self, caller: Caller, request: pb.CheckMatchesRequest) -> pb.CheckMatchesResponse:
        return await self._audit.check_page(request.page_token, mends=request.mend)

    async def _read_work_leases(self) -> list[pb.Lease]:
        """Return the leases of the process that runs the house bots, and of the process that hosts each ladder."""
        works = {HOUSE_BOTS: HOUSE_BOTS}
        works |= {ladder: ladder_lease(ladder) for ladder in await self._store.ladders.all_names()}
        held = {what: await self._store.leases.read_holder(work) for what, work in works.items()}
        return [pb.Lease(what=what, holder=it[0], left_ms=it[1]) for what, it in held.items() if it]

    async def _read_referees(self) -> dict[str, pb.Referee]:
        beats = await self._store.processes.read_heartbeats()
        now = await now_ms(self._store.client) if beats else 0
        return {f"referees/{name}": _referee(name, beats[name], now) for name in sorted(beats)}


def _referee(name: str, beat: Heartbeat, now: int) -> pb.Referee:
    silent_ms = max(0, now - beat.beat_ms)
    return pb.Referee(
        name=f"referees/{name}",
        address=beat.address,
        state=_referee_state(beat, silent_ms),
        matches=0 if beat.has_left else beat.tables,
        free_tables=0 if beat.has_left else beat.free,
        silent_ms=silent_ms,
    )


def _referee_state(beat: Heartbeat, silent_ms: int) -> pb.Referee.State:
    if beat.has_left:
        return pb.Referee.STATE_STOPPED
    if silent_ms > REFEREE_SHOWN_SILENT_MS:
        return pb.Referee.STATE_SILENT
    return pb.Referee.STATE_DRAINING if beat.is_draining else pb.Referee.STATE_SERVING


def _live_match(job: Job, fence: Fence | None) -> pb.LiveMatch:
    if fence is None:
        return pb.LiveMatch(match=job.match)
    referee = f"referees/{fence.owner}"
    return pb.LiveMatch(match=job.match, referee=referee, epoch=fence.epoch, deaths=fence.deaths)


# How many bots wait in each queue, for metrics and for operators.


async def read_queue_depths(store: Store) -> dict[str, int]:
    """Return the number of bots that wait in each queue and ladder, and of created matches that wait for their bots."""
    queues = (*QUEUES, CREATED, *await store.ladders.list_names())
    return {queue: await store.queues.count_waiting(queue) for queue in queues}
