#!lua
-- Revokes an invite. Repeatable. KEYS: invite. Answers 1 revoked, 0 there is no such invite.
local revoked = redis.call('HGET', KEYS[1], 'revoke_ms')
if not revoked then return 0 end
if revoked == '0' then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'revoke_ms', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
end
return 1
