#!lua
-- Gives a name of bots to a holder for good, unless another has it. KEYS: holder of the name. ARGV: id of the holder.
-- Answers 1 it has the name, 0 another has.
local held = redis.call('GET', KEYS[1])
if held then return held == ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
