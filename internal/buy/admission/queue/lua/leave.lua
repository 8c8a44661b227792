-- leave: ends a ticket, and voids its path token if that is still unused.
--
-- KEYS  [1] waiting room  [2] tickets of users  [3] beats  [4] permits  [5] ticket
--       [6] admissions
-- ARGV  [1] ticket  [2] user
-- Reply the status afterwards; "" = not the user's ticket. A second call changes nothing.
--
-- Invariant: the permit of a voided path token is free at once.

local queue, places, beats, permits, ticket_key, admissions = unpack(KEYS)
local ticket, user = ARGV[1], ARGV[2]

local t = redis.call('HMGET', ticket_key, 'status', 'expires', 'user')
if t[3] ~= user then return '' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unused = t[1] == 'ADMITTED' and tonumber(t[2]) > now and tonumber(redis.call('ZSCORE', permits, user) or '0') == tonumber(t[2])
if t[1] ~= 'WAITING' and not unused then return t[1] end
if unused then
  redis.call('ZREM', permits, user)
  redis.call('ZREM', admissions, user)
end
redis.call('ZREM', queue, ticket)
redis.call('ZREM', beats, ticket)
if redis.call('HGET', places, user) == ticket then redis.call('HDEL', places, user) end
redis.call('HSET', ticket_key, 'status', 'LEFT')
return 'LEFT'
