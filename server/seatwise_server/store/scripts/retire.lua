#!lua flags=allow-oom
-- Replaces a match's journal by its record, sets its result, state and end, and lets all of them expire together.
-- KEYS: fence, journal, meta, record. ARGV: epoch, owner, record, result, state, keep ms.
-- Answers 1 OK, 2 ALREADY, 0 FENCED.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] then return 0 end
if fence[3] then return 2 end

redis.call('SET', KEYS[4], ARGV[3], 'PX', ARGV[6])
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[3], 'result', ARGV[4], 'state', ARGV[5], 'end_ms', now)
redis.call('PEXPIRE', KEYS[3], ARGV[6])
redis.call('HSET', KEYS[1], 'retired', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('UNLINK', KEYS[2])
return 1
