#!lua
-- Counts a change that an owner is about to make, within its quota of changes in a minute, all of which may come at once.
-- The owner's hash holds the time at which its whole quota is there again (the generic cell rate algorithm, ITU-T I.371).
-- KEYS: owner. ARGV: the quota of owners that have none of their own; 0 for no limit.
-- Answers the milliseconds until it may come back (0: it is counted, or there is no such owner), its quota (0: none), and the
-- milliseconds until all of that is there again.
local found = redis.call('HMGET', KEYS[1], 'create_ms', 'most_requests', 'requests_full_ms')
local most = tonumber(found[2] or ARGV[1])
if not found[1] or (most == 0 and not found[2]) then return {0, 0, 0} end
if most == 0 then return {3600000, 0, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local full = math.min(math.max(tonumber(found[3] or 0), now), now + 60000) + 60000 / most
local wait = full - 60000 - now
if wait > 1 then return {math.ceil(wait), math.floor(most), math.ceil(full - 60000 / most - now)} end
redis.call('HSET', KEYS[1], 'requests_full_ms', string.format('%.3f', full))
return {0, math.floor(most), math.ceil(full - now)}
