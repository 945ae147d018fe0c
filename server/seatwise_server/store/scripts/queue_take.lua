#!lua
-- Takes the bots of one table off the queue and notes them under the match, so that another lobby can continue after a
-- crash.
-- KEYS: waiting, seating. ARGV: match, seats, patience ms, bots that are left in the queue.
-- Answers the note "<taken ms> <since ms> <bot> <since ms> <bot> ...", or nil if it is too early.
local noted = redis.call('HGET', KEYS[2], ARGV[1])
if noted then return noted end

local seats = tonumber(ARGV[2])
local left = {}
for i = 4, #ARGV do left[ARGV[i]] = true end
local waiting = redis.call('ZRANGE', KEYS[1], 0, seats + #ARGV - 4, 'WITHSCORES')
local first = {}
for i = 1, #waiting, 2 do
  if not left[waiting[i]] and #first < 2 * seats then
    first[#first + 1] = waiting[i]
    first[#first + 1] = waiting[i + 1]
  end
end
if #first == 0 then return false end

local now = now_ms()
if #first < 2 * seats and now - tonumber(first[2]) < tonumber(ARGV[3]) then return false end

local note = {string.format('%d', now)}
for i = 1, #first, 2 do
  redis.call('ZREM', KEYS[1], first[i])
  note[#note + 1] = first[i + 1]
  note[#note + 1] = first[i]
end
note = table.concat(note, ' ')
redis.call('HSET', KEYS[2], ARGV[1], note)
return note
