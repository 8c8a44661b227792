-- add_reservations: writes reservations, or none, while a gate is built.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
-- ARGV  [1] epoch   [2] '1' = units per user are counted
--       then user, record, user, record, …
-- Reply 1 written | 0 another build with a higher epoch has begun
--
-- The last record of a user replaces an earlier one, also in the units per user.
-- Invariant: a build with a lower epoch writes nothing into a newer one. Each call renews
-- since: a build that continues is not taken over.
--
-- Prepended: prelude.lua.

local item, reservations, sale_units = KEYS[1], KEYS[2], KEYS[3]
local epoch, counted = ARGV[1], ARGV[2]

if redis.call('HGET', item, 'epoch') ~= epoch then
  return 0
end
if counted == '1' then
  for i = 3, #ARGV, 2 do
    local user, record = ARGV[i], ARGV[i + 1]
    local before = string.match(redis.call('HGET', reservations, user) or '', '|(%d+)|') or 0
    add_units(sale_units, epoch, user, string.match(record, '|(%d+)|') - before)
    redis.call('HSET', reservations, user, record)
  end
elseif #ARGV > 2 then
  redis.call('HSET', reservations, unpack(ARGV, 3))
end
redis.call('HSET', item, 'since', string.format('%.0f', redis_time()))
return 1
