#!lua flags=allow-oom
-- Frees a bot's seat, withdraws its offer and notifies all lobbies.
-- KEYS: seats, offers, untaken, registration, other seats. ARGV: match/seat, channel, bot, deadline in ms (optional).
-- Answers {1, 0 if it was free, or -1 if it is too late; the owner of the bot, or an empty text}.
local is_late = ARGV[4] and now_ms() >= tonumber(ARGV[4])
if is_late then return {-1, ''} end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[5], ARGV[1])
local held = redis.call('SREM', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' ' .. ARGV[1])
return {held, redis.call('HGET', KEYS[4], 'owner') or ''}
