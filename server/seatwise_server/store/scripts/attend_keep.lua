#!lua flags=allow-oom
-- Extends an attendance and notes what the bot takes from now on, unless a newer one has replaced it. An older one may have
-- taken the place of this one after its lease ran out: the higher turn wins.
-- KEYS: attendance. ARGV: lobby, attend id, max matches, queues, lease ms, turn.
-- Answers 1, or 0 if it was replaced.
local found = redis.call('HMGET', KEYS[1], 'attend_id', 'turn')
local is_older = found[2] and tonumber(found[2]) < tonumber(ARGV[6])
if found[1] and found[1] ~= ARGV[2] and not is_older then return 0 end
redis.call('HSET', KEYS[1], 'lobby', ARGV[1], 'attend_id', ARGV[2], 'max_matches', ARGV[3], 'queues', ARGV[4], 'turn', ARGV[6])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
