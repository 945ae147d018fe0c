#!lua flags=allow-oom
-- Notes that a match of a set is over (number not empty), or that no more matches can join (number empty).
-- When all its matches are over, the set is over too, for good.
-- KEYS: set. ARGV: number, match, state. Answers 1 the set is over, 0 it is not, -1 there is none.
local size = redis.call('HGET', KEYS[1], 'size')
if not size then return -1 end
if ARGV[1] == '' then
  redis.call('HSET', KEYS[1], 'closed', '1')
elseif redis.call('HGET', KEYS[1], 'match/' .. ARGV[1]) == ARGV[2] then
  redis.call('HINCRBY', KEYS[1], 'ended', redis.call('HSETNX', KEYS[1], 'end/' .. ARGV[1], ARGV[3]))
end
local ended, joined, closed, over = unpack(redis.call('HMGET', KEYS[1], 'ended', 'joined', 'closed', 'over'))
if over then return 1 end
if ended ~= (closed and (joined or '0') or size) then return 0 end
redis.call('HSET', KEYS[1], 'over', '1')
return 1
