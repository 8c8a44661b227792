-- Gives a place up, and the path that it led to when that is still unused.
--
-- KEYS  [1] queue  [2] places  [3] beats  [4] permits  [5] ticket
--       The path that the ticket names lies in the same slot.
-- ARGV  [1] ticket  [2] user
--
-- Replies the status afterwards. Doing it again changes nothing.
--
-- Keeps true: the permit of a path that is given up is free at once.
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
