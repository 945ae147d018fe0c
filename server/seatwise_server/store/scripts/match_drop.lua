#!lua flags=allow-oom
-- Drops a match that never had an owner, so that it cannot be claimed or created later.
-- KEYS: fence, journal, meta, record. ARGV: for how many ms that is remembered, deadline in ms (optional).
-- Answers 1; 0, changing nothing, if an owner has left a fence, a journal, a record or a result; -1 if it is too late.
local is_late = ARGV[2] and now_ms() >= tonumber(ARGV[2])
if is_late then return -1 end

local is_owned = redis.call('HEXISTS', KEYS[1], 'epoch') == 1
  or redis.call('EXISTS', KEYS[2]) == 1
  or redis.call('EXISTS', KEYS[4]) == 1
  or redis.call('HEXISTS', KEYS[3], 'result') == 1
if is_owned then return 0 end
redis.call('UNLINK', KEYS[3])
redis.call('HSET', KEYS[1], 'retired', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
