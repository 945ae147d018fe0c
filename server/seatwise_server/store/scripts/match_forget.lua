#!lua flags=allow-oom
-- Notes that a match is over, and schedules its removal.
-- KEYS: index, expiry, time of keeping. ARGV: match, keep ms, prefix of the names of sets, state of the match.
local match, prefix = ARGV[1], ARGV[3]
local now = tonumber(redis.call('HGET', KEYS[3], 'now') or now_ms())
redis.call('ZADD', KEYS[2], 'NX', string.format('%d', now + tonumber(ARGV[2])), match)
local create_us = redis.call('ZSCORE', KEYS[1], match)
if create_us then
  redis.call('ZADD', prefix .. 'state/' .. ARGV[4], create_us, match)
  redis.call('ZREM', prefix .. 'state/OPEN', match)
  redis.call('ZREM', prefix .. 'state/RUNNING', match)
end
return 1
