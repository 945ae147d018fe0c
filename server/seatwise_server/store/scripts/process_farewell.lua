#!lua flags=allow-oom
-- A process says that it has let go of everything. KEYS: beat. Answers 1, or 0 when it is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'left', '1')
return 1
