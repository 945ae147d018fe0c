#!lua flags=no-writes
-- Computes how many more matches the bots of an owner may begin. KEYS: owner, its open matches, its matches of 24 hours.
-- ARGV: the quotas at once and a day of owners that have none of their own; 0 for no limit.
-- Answers {more at once, more in 24 hours, the time in ms at which the next one may begin in 24 hours or 0, matches at once,
-- matches of 24 hours}; -1 for no limit.
local found = redis.call('HMGET', KEYS[1], 'create_ms', 'most_matches_at_once', 'most_matches_a_day')
if not found[1] then return {-1, -1, 0, 0, 0} end
local begin = string.format('(%d', now_ms() - 86400000)
local open, oldest = redis.call('ZCARD', KEYS[2]), redis.call('ZRANGE', KEYS[3], begin, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local rest = redis.call('ZRANGE', KEYS[3], '-inf', begin:sub(2), 'BYSCORE')
local of_day = redis.call('ZCARD', KEYS[3]) - #rest
local function room(own, default, used)
  local most = tonumber(own or default)
  if most == 0 and not own then return -1 end
  return math.max(0, most - used)
end
local back = oldest[2] and oldest[2] + 86400000 or 0
return {room(found[2], ARGV[1], open), room(found[3], ARGV[2], of_day), back, open, of_day}
