#!lua flags=no-writes
-- Reads until when a bot is off the queues.
-- KEYS: no-shows. Answers {the time in ms, its last no-shows}, or nil if it is not off.
local found = redis.call('HMGET', KEYS[1], 'off_until_ms', 'matches')
local time = redis.call('TIME')
if tonumber(found[1] or 0) <= time[1] * 1000 + math.floor(time[2] / 1000) then return false end
return found
