-- add_reservations: writes reservations, or none, while a gate is built.
--
-- KEYS  [1] item   [2] reservations
-- ARGV  [1] epoch   then user, record, user, record, …
-- Reply 1 written | 0 another build with a higher epoch has begun
--
-- Invariant: a build with a lower epoch writes nothing into a newer one. Each call renews
-- since: a build that continues is not taken over.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
if #ARGV > 1 then
  redis.call('HSET', KEYS[2], unpack(ARGV, 2))
end
redis.call('HSET', KEYS[1], 'since', string.format('%.0f', redis_time()))
return 1
