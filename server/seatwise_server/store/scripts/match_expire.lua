#!lua flags=allow-oom
-- Removes matches whose time is up, and of which nothing else is left, from the list and its sets.
-- KEYS: index, expiry, facets, time of keeping. ARGV: prefix of the names of sets, match, match, ...
-- Answers how many were due: an entry of a later match of the same name stays.
local prefix, now = ARGV[1], tonumber(redis.call('HGET', KEYS[4], 'now'))
local gone = 0
for i = 2, #ARGV do
  local match, due = ARGV[i], redis.call('ZSCORE', KEYS[2], ARGV[i])
  if due and tonumber(due) <= now then
    for facet in string.gmatch(redis.call('HGET', KEYS[3], match) or '', '%S+') do redis.call('ZREM', prefix .. facet, match) end
    for _, state in ipairs({'OPEN', 'RUNNING', 'FINISHED', 'VOIDED'}) do redis.call('ZREM', prefix .. 'state/' .. state, match) end
    redis.call('HDEL', KEYS[3], match)
    redis.call('ZREM', KEYS[1], match)
    redis.call('ZREM', KEYS[2], match)
    gone = gone + 1
  end
end
return gone
