#!lua flags=no-writes
-- Computes how many more seats a bot may take. KEYS: seats, attendance, untaken, no-shows.
-- ARGV: a queue that it must attend for, or empty; '1' if its no-shows count there (see seat_reserve) or ''.
-- Answers 0 if it does not attend for the queue, -1 if it is not present, -2 if it is off the queues.
local found = redis.call('HMGET', KEYS[2], 'max_matches', 'queues')
if not found[1] then return -1 end
if ARGV[1] ~= '' and not string.find('\n' .. found[2] .. '\n', '\n' .. ARGV[1] .. '\n', 1, true) then return 0 end
local room = tonumber(found[1]) - redis.call('SCARD', KEYS[1])
if ARGV[2] == '1' and room > 0 then
  local form = redis.call('HMGET', KEYS[4], 'off_until_ms', 'taken')
  if tonumber(form[1] or 0) > now_ms() then return -2 end
  room = math.min(room, 1 + tonumber(form[2] or 0) - redis.call('HLEN', KEYS[3]))
end
return math.max(0, room)
