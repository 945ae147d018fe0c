#!lua flags=allow-oom
-- Notes something that is no result, with how many results there were. KEYS: events, names, places.
-- ARGV: name (of which there is one; or empty), event. Answers 1, or 0 when it is noted already.
if ARGV[1] ~= '' and redis.call('HSETNX', KEYS[2], ARGV[1], '1') == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', 'at', redis.call('HLEN', KEYS[3]), 'e', ARGV[2])
return 1
