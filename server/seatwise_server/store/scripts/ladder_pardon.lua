#!lua
-- Forgets what a bot has forfeited so far. KEYS: pardons, places. ARGV: bot. Answers how many results there were.
local results = redis.call('HLEN', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], results)
return results
