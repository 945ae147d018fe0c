#!lua flags=allow-oom
-- Resets the deaths of a match to the last one. The match has made progress since the earlier ones, so it did not cause
-- them.
-- KEYS: fence. ARGV: epoch, owner. Answers 1 done, 0 the match is another owner's.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then return 0 end
redis.call('HSET', KEYS[1], 'deaths', 1, 'late', 0)
return 1
