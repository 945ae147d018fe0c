#!lua
-- Adopts a proposal that is so old that its lobby must have died; of several lobbies that try only one succeeds.
-- KEYS: seating. ARGV: match, old ms. Answers the note with the present time, or nil if it cannot be adopted.
local note = redis.call('HGET', KEYS[1], ARGV[1])
if not note then return false end
local now = now_ms()
local taken, rest = string.match(note, '^(%d+)(.*)$')
if now - tonumber(taken) < tonumber(ARGV[2]) then return false end
note = string.format('%d', now) .. rest
redis.call('HSET', KEYS[1], ARGV[1], note)
return note
