-- leave: ends a ticket, and voids its path token if that is still unused.
--
-- KEYS  [1] waiting room  [2] tickets of users  [3] beats  [4] permits  [5] ticket
--       [6] admissions
-- ARGV  [1] ticket  [2] user
-- Reply the status afterwards; "" = not the user's ticket. A second call changes nothing.
--
-- Invariant: the permit of a voided path token is free at once.
local t = redis.call('HMGET', KEYS[5], 'status', 'expires', 'user')
if t[3] ~= ARGV[2] then return '' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unused = t[1] == 'ADMITTED' and tonumber(t[2]) > now and tonumber(redis.call('ZSCORE', KEYS[4], ARGV[2]) or '0') == tonumber(t[2])
if t[1] ~= 'WAITING' and not unused then return t[1] end
if unused then
  redis.call('ZREM', KEYS[4], ARGV[2])
  redis.call('ZREM', KEYS[6], ARGV[2])
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[1] then redis.call('HDEL', KEYS[2], ARGV[2]) end
redis.call('HSET', KEYS[5], 'status', 'LEFT')
return 'LEFT'
