#!lua flags=allow-oom
-- Frees a bot's seat and takes its offer back. KEYS: seats, offers. ARGV: match/seat.
-- Answers 1, or 0 when it was free.
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('SREM', KEYS[1], ARGV[1])
