#!lua
-- Creates a ladder once. KEYS: ladder. ARGV: settings. Answers the settings that it has.
if redis.call('HSETNX', KEYS[1], 'settings', ARGV[1]) == 1 then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'create_us', string.format('%d%06d', time[1], time[2]))
end
return redis.call('HGET', KEYS[1], 'settings')
