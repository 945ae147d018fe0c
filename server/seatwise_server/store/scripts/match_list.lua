#!lua
-- Puts a match into the index and into the sets of its facets. Repeatable. An entry of an earlier match with the same
-- name, whose record has expired, is replaced: its place, its expiry and its sets are not those of this match.
-- KEYS: index, expiry, facets.
-- ARGV: match, creation time in microseconds, prefix of the names of sets, facets with spaces between them.
local match, create_us, prefix = ARGV[1], ARGV[2], ARGV[3]
local listed = redis.call('ZSCORE', KEYS[1], match)
local is_same = listed and tonumber(listed) == tonumber(create_us)
local had = redis.call('HGET', KEYS[3], match)
if had and had ~= ARGV[4] then
  for facet in string.gmatch(had, '%S+') do redis.call('ZREM', prefix .. facet, match) end
end
if not is_same then
  for _, state in ipairs({'OPEN', 'RUNNING', 'FINISHED', 'VOIDED'}) do redis.call('ZREM', prefix .. 'state/' .. state, match) end
  redis.call('ZADD', KEYS[1], create_us, match)
  redis.call('ZREM', KEYS[2], match)
end
redis.call('HSET', KEYS[3], match, ARGV[4])
for facet in string.gmatch(ARGV[4], '%S+') do redis.call('ZADD', prefix .. facet, create_us, match) end
local is_over = redis.call('ZSCORE', prefix .. 'state/FINISHED', match) or redis.call('ZSCORE', prefix .. 'state/VOIDED', match)
if not is_over then redis.call('ZADD', prefix .. 'state/OPEN', create_us, match) end
