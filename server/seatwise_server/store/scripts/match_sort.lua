#!lua flags=allow-oom
-- Puts a listed match into the set of its state. A match that is over also leaves the sets of those that are not.
-- KEYS: index. ARGV: match, prefix of the names of sets, set of the state.
-- Answers 1, or 0 if it is not listed, or already sorted as a match that is over.
local match, states = ARGV[1], ARGV[2] .. 'state/'
local create_us = redis.call('ZSCORE', KEYS[1], match)
if not create_us then return 0 end
local is_over = ARGV[3] == 'FINISHED' or ARGV[3] == 'VOIDED'
local was_over = redis.call('ZSCORE', states .. 'FINISHED', match) or redis.call('ZSCORE', states .. 'VOIDED', match)
if was_over and not is_over then return 0 end
redis.call('ZADD', states .. ARGV[3], create_us, match)
if is_over then
  redis.call('ZREM', states .. 'OPEN', match)
  redis.call('ZREM', states .. 'RUNNING', match)
else
  redis.call('ZADD', states .. 'OPEN', create_us, match)
end
return 1
