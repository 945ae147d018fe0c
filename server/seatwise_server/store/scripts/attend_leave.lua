#!lua flags=allow-oom
-- Ends an attendance, if it is still the caller's.
-- KEYS: attendance. ARGV: attend id. Answers 1 done, 0 not the caller's.
if redis.call('HGET', KEYS[1], 'attend_id') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1])
return 1
