#!lua flags=allow-oom
-- Counts a match no more among those that the bots of an owner play. KEYS: its open matches, its matches of 24 hours.
-- ARGV: match, '1' if it does not count in 24 hours either or '', deadline in ms (optional).
-- Answers 1, 0 if it was not counted, or -1 if it is too late.
if ARGV[3] and now_ms() >= tonumber(ARGV[3]) then return -1 end
if ARGV[2] == '1' then redis.call('ZREM', KEYS[2], ARGV[1]) end
return redis.call('ZREM', KEYS[1], ARGV[1])
