#!lua
-- Counts a match, once, among those that the bots of an owner play, within its quotas of matches at once and in 24 hours.
-- A repeat for a match that is counted already renews its time, so that it is not taken for a leftover.
-- KEYS: owner, its open matches, its matches of 24 hours. ARGV: match, deadline in ms, quota at once, quota of 24 hours, '1' if
-- the quota of 24 hours applies to this match or ''. These quotas are for owners that have none of their own; 0 is no limit.
-- Answers 1 counted, or there is no such owner; 3 as many at once as it may play, 4 as many in 24 hours, 5 too late.
local found = redis.call('HMGET', KEYS[1], 'create_ms', 'most_matches_at_once', 'most_matches_a_day')
if not found[1] then return 1 end
local now = now_ms()
if now >= tonumber(ARGV[2]) then return 5 end
local function limit(own, default)
  if own then return tonumber(own) end
  return tonumber(default) > 0 and tonumber(default) or nil
end
local most, most_a_day = limit(found[2], ARGV[3]), limit(found[3], ARGV[4])
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  if most and redis.call('ZCARD', KEYS[2]) >= most then return 3 end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%d', now - 86400000))
  if most_a_day and ARGV[5] == '1' and redis.call('ZCARD', KEYS[3]) >= most_a_day then return 4 end
  if most_a_day then
    redis.call('ZADD', KEYS[3], string.format('%d', now), ARGV[1])
    redis.call('PEXPIRE', KEYS[3], 86400000)
  end
end
redis.call('ZADD', KEYS[2], string.format('%d', now), ARGV[1])
return 1
