#!lua
-- Sets quotas of an owner. KEYS: owner. ARGV: names and values, in turn. Answers 1 done, 0 there is no such owner.
if redis.call('HEXISTS', KEYS[1], 'most_bots') == 0 then return 0 end
if #ARGV > 0 then redis.call('HSET', KEYS[1], unpack(ARGV)) end
return 1
