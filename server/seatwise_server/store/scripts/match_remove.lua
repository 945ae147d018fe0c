#!lua flags=allow-oom
-- Removes what is left of a match that is over. A later match of the same name stays.
-- KEYS: fence, meta, record. ARGV: the time at which it was due, in ms of Redis's clock.
-- Answers 1 if nothing of that match is left, 0 if the match was over only afterwards.
local over_ms = redis.call('HGET', KEYS[1], 'retired')
if not over_ms then return 1 end
if tonumber(over_ms) > tonumber(ARGV[1]) then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
