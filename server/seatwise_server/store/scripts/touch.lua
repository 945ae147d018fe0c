#!lua flags=allow-oom
-- Writes a value that is there already, so that a WAIT after it waits for all earlier writes.
-- KEYS: fence. Answers 1, or 0 if nothing is left of the match.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return 0 end
redis.call('HSET', KEYS[1], 'epoch', epoch)
return 1
