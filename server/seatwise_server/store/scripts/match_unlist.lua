#!lua flags=allow-oom
-- Removes a match from the index and all its sets. KEYS: index, facets. ARGV: match, prefix of the names of sets.
-- Answers 1, or 0 if it was not listed.
local match, prefix = ARGV[1], ARGV[2]
for facet in string.gmatch(redis.call('HGET', KEYS[2], match) or '', '%S+') do redis.call('ZREM', prefix .. facet, match) end
for _, state in ipairs({'OPEN', 'RUNNING', 'FINISHED', 'VOIDED'}) do redis.call('ZREM', prefix .. 'state/' .. state, match) end
redis.call('HDEL', KEYS[2], match)
return redis.call('ZREM', KEYS[1], match)
