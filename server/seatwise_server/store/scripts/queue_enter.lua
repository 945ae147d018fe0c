#!lua
-- Enters a queue, once. KEYS: waiting. ARGV: bot, since (empty: now).
-- Answers {1 entered or 0 it waited already, since when in milliseconds}.
local since = ARGV[2]
if since == '' then
  local time = redis.call('TIME')
  since = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
end
local entered = redis.call('ZADD', KEYS[1], 'NX', since, ARGV[1])
return {entered, redis.call('ZSCORE', KEYS[1], ARGV[1])}
