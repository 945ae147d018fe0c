#!lua
-- Dissolves a proposal and puts some of its bots back to their old places.
-- KEYS: waiting, seating. ARGV: match, since, bot, since, bot, ...
-- Answers 1, or 0 if there is no such proposal (any more).
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
for i = 2, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 'NX', ARGV[i], ARGV[i + 1])
end
return 1
