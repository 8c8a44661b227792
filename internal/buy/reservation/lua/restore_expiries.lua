-- restore_expiries: sets the expiries of users and persons after Redis lost them.
--
-- KEYS  [1] prefix of the expiries in the sale
-- ARGV  user or person key, count, TTL (ms), …
-- Reply 1
--
-- Invariant: a count never falls.

for i = 1, #ARGV, 3 do
  local key, count = KEYS[1] .. ARGV[i], ARGV[i + 1]
  if tonumber(redis.call('GET', key) or 0) < tonumber(count) then redis.call('SET', key, count, 'PX', ARGV[i + 2]) end
end
return 1
