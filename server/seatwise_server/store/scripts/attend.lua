#!lua
-- Notes that a bot is present, or changes what it takes.
-- KEYS: attendance. ARGV: lobby, attend id, max matches, queues, lease ms, channel, bot, turn.
-- Answers {lobby, attend id} of an older attendance that this one replaces, or an empty list.
local before = redis.call('HMGET', KEYS[1], 'lobby', 'attend_id')
local turn = tonumber(redis.call('HGET', KEYS[1], 'turn') or 0)
if before[2] and before[2] ~= ARGV[2] and turn > tonumber(ARGV[8]) then return {} end
redis.call('HSET', KEYS[1], 'lobby', ARGV[1], 'attend_id', ARGV[2], 'max_matches', ARGV[3], 'queues', ARGV[4])
redis.call('HSET', KEYS[1], 'turn', ARGV[8])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if before[2] == ARGV[2] then return {} end
redis.call('PUBLISH', ARGV[6], ARGV[7] .. ' ' .. ARGV[2])
if before[2] then return before end
return {}
