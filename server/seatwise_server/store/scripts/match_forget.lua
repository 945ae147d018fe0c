#!lua flags=allow-oom
-- Notes that a match is over, and schedules its removal. Also removes the matches that are due from the index and their
-- sets, some at a time.
-- KEYS: index, expiry, facets.
-- ARGV: match, keep ms, the most matches to remove, prefix of the names of sets, state of the match.
local match, prefix = ARGV[1], ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], 'NX', string.format('%d', now + tonumber(ARGV[2])), match)
local create_us = redis.call('ZSCORE', KEYS[1], match)
if create_us then
  redis.call('ZADD', prefix .. 'state/' .. ARGV[5], create_us, match)
  redis.call('ZREM', prefix .. 'state/OPEN', match)
  redis.call('ZREM', prefix .. 'state/RUNNING', match)
end
local gone = redis.call('ZRANGE', KEYS[2], '-inf', string.format('%d', now), 'BYSCORE', 'LIMIT', 0, ARGV[3])
if #gone == 0 then return 0 end
for _, name in ipairs(gone) do
  for facet in string.gmatch(redis.call('HGET', KEYS[3], name) or '', '%S+') do redis.call('ZREM', prefix .. facet, name) end
end
for _, state in ipairs({'OPEN', 'RUNNING', 'FINISHED', 'VOIDED'}) do redis.call('ZREM', prefix .. 'state/' .. state, unpack(gone)) end
redis.call('HDEL', KEYS[3], unpack(gone))
redis.call('ZREM', KEYS[1], unpack(gone))
redis.call('ZREM', KEYS[2], unpack(gone))
return #gone
