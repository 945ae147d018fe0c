#!lua
-- Takes these bots off the queue, all or none, and notes them in this order under the match.
-- KEYS: waiting, seating. ARGV: match, bot, bot, ...
-- Answers the note "<taken ms> <since ms> <bot> <since ms> <bot> ...", or nil if one of them does not wait.
local noted = redis.call('HGET', KEYS[2], ARGV[1])
if noted then return noted end

local note = {string.format('%d', now_ms())}
for i = 2, #ARGV do
  local since = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if not since then return false end
  note[#note + 1] = since
  note[#note + 1] = ARGV[i]
end
redis.call('ZREM', KEYS[1], unpack(ARGV, 2))
note = table.concat(note, ' ')
redis.call('HSET', KEYS[2], ARGV[1], note)
return note
