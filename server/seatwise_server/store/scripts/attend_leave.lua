#!lua flags=allow-oom
-- Ends an attendance, if it is still the caller's. For a bot that leaves by itself, marks as left the seats that it was
-- told of, and those that it has just been given.
-- KEYS: attendance, untaken, other seats. ARGV: attend id, '1' if the bot leaves by itself or '', late ms.
-- Answers 1 done, 0 not the caller's.
if redis.call('HGET', KEYS[1], 'attend_id') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1])
if ARGV[2] ~= '1' then return 1 end
local now = now_ms()
for i = 2, 3 do
  for _, seat in ipairs(redis.call('HKEYS', KEYS[i])) do
    local state, offered = string.match(redis.call('HGET', KEYS[i], seat), '^(%a+) (%d+)$')
    local is_new = state == 'reserved' or (state == 'offered' and now - offered <= tonumber(ARGV[3]))
    if state == 'told' or is_new then redis.call('HSET', KEYS[i], seat, 'left ' .. offered) end
  end
end
return 1
