#!lua flags=no-writes
-- Reads until when a bot is off the queues.
-- KEYS: no-shows. Answers {the time in ms, its last no-shows}, or nil if it is not off.
local found = redis.call('HMGET', KEYS[1], 'off_until_ms', 'matches')
if tonumber(found[1] or 0) <= now_ms() then return false end
return found
