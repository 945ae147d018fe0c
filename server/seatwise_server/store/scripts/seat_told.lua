#!lua
-- Notes that offers of a bot's untaken seats were handed to its stream; one that came late is no offer to be held to.
-- KEYS: untaken. ARGV: late ms, match/seat, match/seat, ... Answers how many were noted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local noted = 0
for i = 2, #ARGV do
  local offered = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0) or 0
  if offered > 0 and now - offered <= tonumber(ARGV[1]) then
    redis.call('HSET', KEYS[1], ARGV[i], 'told')
    noted = noted + 1
  end
end
return noted
