#!lua flags=allow-oom
-- Takes a match that nobody has owned off the books, and sees to it that nobody can claim or create it later.
-- KEYS: fence, journal, meta, record. ARGV: for how long that is remembered in ms, when it is too late in ms (may be absent).
-- Answers 1; or 0, and changes nothing, where an owner has left a fence, a journal, a record or a result; or -1, it is too late.
local time = redis.call('TIME')
local is_late = ARGV[2] and time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[2])
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
