#!lua
-- Revokes an invite. Repeatable. KEYS: invite. Answers 1 revoked, 0 there is no such invite.
local revoked = redis.call('HGET', KEYS[1], 'revoke_ms')
if not revoked then return 0 end
if revoked == '0' then
  redis.call('HSET', KEYS[1], 'revoke_ms', string.format('%d', now_ms()))
end
return 1
