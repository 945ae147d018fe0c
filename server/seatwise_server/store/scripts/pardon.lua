#!lua flags=allow-oom
-- The match has got on since its owners before the last one died: their deaths were not its doing. One is left.
-- KEYS: fence. ARGV: epoch, owner. Answers 1 done, 0 the match is another's.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then return 0 end
redis.call('HSET', KEYS[1], 'deaths', 1, 'late', 0)
return 1
