#!lua flags=no-writes
-- Whether a bot attends for the queue, and for more matches than it holds seats.
-- KEYS: seats, attendance. ARGV: queue. Answers 1, or 0 when it does not, or is not present.
local found = redis.call('HMGET', KEYS[2], 'max_matches', 'queues')
if not found[1] or redis.call('SCARD', KEYS[1]) >= tonumber(found[1]) then return 0 end
if string.find('\n' .. found[2] .. '\n', '\n' .. ARGV[1] .. '\n', 1, true) then return 1 end
return 0
