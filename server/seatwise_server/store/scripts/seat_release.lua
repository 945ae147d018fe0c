#!lua flags=allow-oom
-- Frees a bot's seat, takes its offer back and tells all lobbies so.
-- KEYS: seats, offers. ARGV: match/seat, channel, bot.
-- Answers 1, or 0 when it was free.
redis.call('HDEL', KEYS[2], ARGV[1])
local held = redis.call('SREM', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' ' .. ARGV[1])
return held
