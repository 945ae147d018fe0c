#!lua flags=allow-oom
-- Lengthens the lease of an attendance, or with lease 0 ends it, if it is still the caller's.
-- KEYS: attendance. ARGV: attend id, lease ms. Answers 1 done, 0 not the caller's.
if redis.call('HGET', KEYS[1], 'attend_id') ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('UNLINK', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
