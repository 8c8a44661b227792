-- add_reservations: writes reservations, or none, while a gate is built.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
-- ARGV  [1] epoch   [2] '1' = units per user are counted, '2' = those of persons alone
--       [3] id of the item
--       then user, record, user, record, …
-- Reply 1 written | 0 another build with a higher epoch has begun
--
-- The last record of a user replaces an earlier one, also in the units per user.
-- Invariant: a build with a lower epoch writes nothing into a newer one. Each call renews
-- since: a build that continues is not taken over.
--
-- Prepended: prelude.lua.

local item, reservations, sale_units = KEYS[1], KEYS[2], KEYS[3]
local epoch, counted, item_id = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HGET', item, 'epoch') ~= epoch then
  return 0
end
local gate = { sale_limit = counted == '1' and 1 or 0 } -- what person_fields reads

local function count(user, record, sign)
  local units, at = string.match(record, '|(%d+)|([^|]*)|')
  if counted == '1' then add_units(sale_units, epoch, user, sign * units) end
  for _, person in ipairs(person_fields(gate, item_id, at)) do add_units(sale_units, epoch, person, sign * units) end
end

if counted ~= '0' then
  for i = 4, #ARGV, 2 do
    local user, record = ARGV[i], ARGV[i + 1]
    local before = redis.call('HGET', reservations, user)
    if before then count(user, before, -1) end
    count(user, record, 1)
    redis.call('HSET', reservations, user, record)
  end
elseif #ARGV > 3 then
  redis.call('HSET', reservations, unpack(ARGV, 4))
end
redis.call('HSET', item, 'since', string.format('%.0f', redis_time()))
return 1
