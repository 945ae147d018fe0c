#!lua
-- Notes that a bot is present, or changes what it takes, unless a newer stream of it attends.
-- KEYS: attendance. ARGV: lobby, attend id, max matches, queues, lease ms, channel, bot, turn.
-- Answers 1, or 0 if a newer stream attends.
local before = redis.call('HMGET', KEYS[1], 'attend_id', 'turn')
local is_same = before[1] == ARGV[2]
if before[1] and not is_same and tonumber(before[2] or 0) > tonumber(ARGV[8]) then return 0 end
redis.call('HSET', KEYS[1], 'lobby', ARGV[1], 'attend_id', ARGV[2], 'max_matches', ARGV[3], 'queues', ARGV[4])
redis.call('HSET', KEYS[1], 'turn', ARGV[8])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if not is_same then redis.call('PUBLISH', ARGV[6], ARGV[7] .. ' ' .. ARGV[2]) end
return 1
