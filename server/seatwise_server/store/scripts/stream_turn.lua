#!lua
-- Numbers a stream of a bot by the time of its arrival, so that of two streams the one that arrived later has the higher number,
-- whichever is numbered first. The clock is this node's, so all lobbies share it. Where the clock was set back behind the last number,
-- the order of these calls decides. Versions that count one up from the last number may number streams of the same bot, too.
-- KEYS: registration. ARGV: microseconds since the stream arrived. Answers the number, as text.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('HGET', KEYS[1], 'streams') or 0)
local turn = now - ARGV[1]
if last > now then turn = last + 1 end
local text = string.format('%.0f', turn)
if turn > last then redis.call('HSET', KEYS[1], 'streams', text) end
return text
