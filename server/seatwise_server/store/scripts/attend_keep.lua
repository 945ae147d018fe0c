#!lua flags=allow-oom
-- Extends an attendance and notes what the bot takes from now on, unless a newer one has replaced it.
-- KEYS: attendance. ARGV: lobby, attend id, max matches, queues, lease ms.
-- Answers 1, or 0 if it was replaced.
local attends = redis.call('HGET', KEYS[1], 'attend_id')
if attends and attends ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'lobby', ARGV[1], 'attend_id', ARGV[2], 'max_matches', ARGV[3], 'queues', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
