-- leave: ends a ticket, and voids its path token if that is still unused.
--
-- KEYS  [1] waiting room  [2] tickets of users  [3] beats  [4] permits  [5] ticket
--       The path token that the ticket names is in the same slot.
-- ARGV  [1] ticket  [2] user
-- Reply the status afterwards; "" = not the user's ticket. A second call changes nothing.
--
-- Invariant: the permit of a voided path token is free at once.
local t = redis.call('HMGET', KEYS[5], 'status', 'path', 'value', 'user')
if t[4] ~= ARGV[2] then return '' end
local unused = t[1] == 'ADMITTED' and redis.call('GET', t[2]) == t[3]
if t[1] ~= 'WAITING' and not unused then return t[1] end
if unused then
  redis.call('DEL', t[2])
  redis.call('ZREM', KEYS[4], ARGV[2])
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[1] then redis.call('HDEL', KEYS[2], ARGV[2]) end
redis.call('HSET', KEYS[5], 'status', 'LEFT')
return 'LEFT'
