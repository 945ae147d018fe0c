#!lua flags=allow-oom
-- Notes that a bot has not sat down in a match of a queue. It counts if the caller says so and the bot was told of its
-- seat in time. Also, the bot must have left by itself, or a lobby must still renew its attendance: else its lobby has
-- died, and the bot may not know of another one.
-- KEYS: untaken, no-shows, attendance. ARGV: match/seat, match, '1' it counts or '', channel, bot, remembered ms, most
-- ms, pause ms, longest pause ms, day ms, keep ms.
-- Answers 0 it is noted already or the seat is not one of a queue, 1 not counted, 2 counted, 3 the bot is off the
-- queues.
local held = redis.call('HGET', KEYS[1], ARGV[1])
if not held then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[4], ARGV[5] .. ' ' .. ARGV[1])
local state = string.match(held, '^%a+')
local knows = state == 'left' or (state == 'told' and redis.call('EXISTS', KEYS[3]) == 1)
if not knows or ARGV[3] ~= '1' then return 1 end

local now = now_ms()
local found = redis.call('HMGET', KEYS[2], 'forgiven_at_ms', 'off_until_ms', 'pauses', 'matches')
local remembered, most = tonumber(ARGV[6]), tonumber(ARGV[7])
local off_until, pauses = tonumber(found[2] or 0), tonumber(found[3] or 0)
redis.call('HSET', KEYS[2], 'taken', '0')
if off_until > now then return 3 end
local forgiven = math.min(math.max(now, tonumber(found[1] or 0)) + remembered, now + most + remembered)
local matches = (found[4] and found[4] .. ' ' or '') .. ARGV[2]
matches = string.match(matches, '%S+ %S+ %S+$') or matches
local answer = 2
if forgiven - now > most then
  if now - off_until > tonumber(ARGV[10]) then pauses = 0 end
  off_until = now + math.min(ARGV[8] * 2 ^ pauses, tonumber(ARGV[9]))
  answer, forgiven, pauses = 3, off_until + most, pauses + 1 -- while the bot is off, nothing is forgiven
end
local text = string.format
redis.call('HSET', KEYS[2], 'forgiven_at_ms', text('%d', forgiven), 'off_until_ms', text('%d', off_until))
redis.call('HSET', KEYS[2], 'pauses', text('%d', pauses), 'matches', matches)
redis.call('PEXPIRE', KEYS[2], ARGV[11])
return answer
