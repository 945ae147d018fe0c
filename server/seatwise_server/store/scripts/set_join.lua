#!lua
-- Adds a match to a set of duplicate deals; the first match creates the set.
-- KEYS: set. ARGV: number, match, size, kind, seed (of a new set).
-- Answers {the reason of a refusal, or 'OK'; the seed of the set; its own size, kind or match}.
local size, kind, seed, over, closed = unpack(redis.call('HMGET', KEYS[1], 'size', 'kind', 'seed', 'over', 'closed'))
if not seed then
  size, kind, seed = ARGV[3], ARGV[4], ARGV[5]
  redis.call('HSET', KEYS[1], 'size', size, 'kind', kind, 'seed', seed, 'ended', 0)
end
local field = 'match/' .. ARGV[1]
local there = redis.call('HGET', KEYS[1], field)
if there == ARGV[2] then return {'OK', seed, ''} end
if size ~= ARGV[3] then return {'SIZE', '', size} end
if kind ~= ARGV[4] then return {'KIND', '', kind} end
if over or closed then return {'OVER', '', ''} end
if there then
  if redis.call('HGET', KEYS[1], 'end/' .. ARGV[1]) ~= 'VOIDED' then return {'TAKEN', '', there} end
  redis.call('HDEL', KEYS[1], 'end/' .. ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'ended', -1)
else
  redis.call('HINCRBY', KEYS[1], 'joined', 1)
end
redis.call('HSET', KEYS[1], field, ARGV[2])
return {'OK', seed, ''}
