#!lua
-- Notes that offers of a bot's seats were delivered to its stream: in time, or late through our fault.
-- KEYS: untaken, other seats. ARGV: late ms, match/seat, match/seat, ... Answers how many it was told of in time.
local now = now_ms()
local in_time = 0
for _, key in ipairs(KEYS) do
  for i = 2, #ARGV do
    local offered = string.match(redis.call('HGET', key, ARGV[i]) or '', '^offered (%d+)$')
    if offered then
      local is_late = now - offered > tonumber(ARGV[1])
      redis.call('HSET', key, ARGV[i], (is_late and 'late ' or 'told ') .. offered)
      in_time = in_time + (is_late and 0 or 1)
    end
  end
end
return in_time
