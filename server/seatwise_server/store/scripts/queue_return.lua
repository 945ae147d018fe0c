#!lua
-- Puts a bot back to where it stood, or leaves it where it is if that is further ahead.
-- KEYS: waiting. ARGV: bot, since when in milliseconds. Answers nothing.
redis.call('ZADD', KEYS[1], 'LT', ARGV[2], ARGV[1])
