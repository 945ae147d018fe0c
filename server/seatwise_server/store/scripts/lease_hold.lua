#!lua flags=allow-oom
-- Takes or lengthens a lease that only one process may have, or with 0 ms gives it back.
-- KEYS: lease. ARGV: process, ms. Answers 1 it has it (or had, when it gave it back), 0 another has it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('UNLINK', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
