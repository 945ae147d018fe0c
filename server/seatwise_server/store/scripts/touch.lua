#!lua flags=allow-oom
-- Writes what stands there already, so that a WAIT behind it waits for all that was written before.
-- KEYS: fence. Answers 1, or 0 when there is nothing left of the match.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return 0 end
redis.call('HSET', KEYS[1], 'epoch', epoch)
return 1
