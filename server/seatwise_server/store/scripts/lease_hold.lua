#!lua flags=allow-oom
-- Acquires or extends a lease that only one process may have; with 0 ms, releases it.
-- KEYS: lease. ARGV: process, ms. Answers 1 this process has it (or had it until the release), 0 another process has
-- it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('UNLINK', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
