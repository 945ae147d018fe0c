#!lua flags=no-writes
-- For how many matches more than it holds seats a bot attends.
-- KEYS: seats, attendance. ARGV: a queue for which it must attend, or empty. Answers 0 when it does not, or is not present.
local found = redis.call('HMGET', KEYS[2], 'max_matches', 'queues')
if not found[1] then return 0 end
if ARGV[1] ~= '' and not string.find('\n' .. found[2] .. '\n', '\n' .. ARGV[1] .. '\n', 1, true) then return 0 end
return math.max(0, tonumber(found[1]) - redis.call('SCARD', KEYS[1]))
