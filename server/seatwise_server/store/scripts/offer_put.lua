#!lua
-- Offers a bot its seat, if the bot holds it and there is no offer of a higher epoch.
-- KEYS: offers, seats, untaken, other seats. ARGV: match/seat, epoch, offer, channel, bot. Answers 1, or 0 if not.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then return 0 end
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held and tonumber(string.match(held, '^%d+')) > tonumber(ARGV[2]) then return 0 end
for i = 3, 4 do
  if redis.call('HGET', KEYS[i], ARGV[1]) == 'reserved 0' then
    redis.call('HSET', KEYS[i], ARGV[1], string.format('offered %d', now_ms()))
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[5] .. ' ' .. ARGV[1])
return 1
