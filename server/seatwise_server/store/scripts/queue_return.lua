#!lua
-- Puts a bot back to its old place, unless it waits further ahead.
-- KEYS: waiting. ARGV: bot, since when in milliseconds. Answers nothing.
redis.call('ZADD', KEYS[1], 'LT', ARGV[2], ARGV[1])
