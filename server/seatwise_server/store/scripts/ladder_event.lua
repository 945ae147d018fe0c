#!lua flags=allow-oom
-- Notes an event that is not a result, with the number of results so far. KEYS: events, names, places.
-- ARGV: name (an event of this name is noted once; empty: always), event. Answers 1, or 0 if it was noted before.
if ARGV[1] ~= '' and redis.call('HSETNX', KEYS[2], ARGV[1], '1') == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', 'at', redis.call('HLEN', KEYS[3]), 'e', ARGV[2])
return 1
