#!lua flags=allow-oom
-- Replaces a match's journal by its record, sets its result, state and end, all of which stay until `match_remove.lua`.
-- KEYS: fence, journal, meta, record. ARGV: epoch, owner, record, result, state.
-- Answers 1 OK, 2 ALREADY, 0 FENCED.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] then return 0 end
if fence[3] then return 2 end

redis.call('SET', KEYS[4], ARGV[3])
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[3], 'result', ARGV[4], 'state', ARGV[5], 'end_ms', now)
redis.call('HSET', KEYS[1], 'retired', now)
redis.call('UNLINK', KEYS[2])
return 1
