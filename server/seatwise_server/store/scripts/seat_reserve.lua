#!lua
-- Reserves a seat for a bot, within the number of matches that it attends for. A seat of a queue is untaken until the
-- bot sits down. A bot may have one untaken seat, and one more for each seat that it has taken in time since its last
-- no-show.
-- KEYS: seats, attendance, untaken, no-shows, other seats. ARGV: match/seat, '1' for a seat of a queue or '', deadline
-- in ms (optional).
-- Answers 1 RESERVED, 2 ALREADY, 3 FULL, 4 ABSENT, 5 LATE, 6 BARRED.
local now = now_ms()
if ARGV[3] and now >= tonumber(ARGV[3]) then return 5 end
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end
local most = redis.call('HGET', KEYS[2], 'max_matches')
if not most then return 4 end
if redis.call('SCARD', KEYS[1]) >= tonumber(most) then return 3 end
if ARGV[2] == '1' then
  local found = redis.call('HMGET', KEYS[4], 'off_until_ms', 'taken')
  if tonumber(found[1] or 0) > now then return 6 end
  local most_untaken = 1 + tonumber(found[2] or 0)
  if redis.call('HLEN', KEYS[3]) >= most_untaken then return 6 end
  redis.call('HSET', KEYS[3], ARGV[1], 'reserved 0')
else
  redis.call('HSET', KEYS[5], ARGV[1], 'reserved 0')
  redis.call('PEXPIRE', KEYS[5], 86400000)
end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
