-- release: returns the units of one reservation, or all but some of them. A second call does
-- nothing.
--
-- KEYS  [1] item   [2] reservations   [3] prefix of the expiries in the sale
--       [4] idempotency keys of the sale   [5] units per user of the sale
-- ARGV  [1] user   [2] task   [3] '1' = the reservation expired, or was cancelled late
--       [4] 0 = the units return | 1 = Postgres has no such units: they are removed
--       | 2 = they are no longer part of the sale: they are removed
--       [5] TTL of idempotency keys, ms   [6] id of the item
--       [7] units that stay reserved; 0 = the reservation ends
-- Reply { 1 released | 0 no reservation of that task, or of no more units than stay | -1 not loaded
--         | -2 the gate is being built, stock, revision, epoch }
--
-- Invariant: stock + reserved = total; units return once per task, to the share that kept them; the expiry is
-- counted and its idempotency key recorded in the same step. Units that
-- Postgres does not have raise a negative stock first: it stands for units that were
-- accepted and do not exist. A gate that is being built may still write
-- the reservation of that task, because Postgres was read before the task ended.
--
-- Prepended: prelude.lua and expiries.lua.

local item, reservations, expiries, idempotency_keys, sale_units = unpack(KEYS)
local user, released_task, expired, lost, idempotency_ttl, item_id, units_kept = unpack(ARGV)

local g = read_gate(item)
if g.state == 'loading' then
  return { -2, 0, 0, tonumber(g.epoch or 0) }
end
if not g.complete then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(g.epoch)
local record = redis.call('HGET', reservations, user)
local task, quantity, at, idem = string.match(record or '', '^([^|]*)|(%d+)|([^|]*)|(.*)$')
local keep = tonumber(units_kept)
if task ~= released_task or keep > 0 and tonumber(quantity) <= keep then
  return { 0, g.stock, g.rev, epoch }
end
local ordered = quantity
quantity = tonumber(quantity) - keep
local returned, total = quantity, g.total
if lost == '1' then
  returned = math.min(quantity, math.max(0, -g.stock))
elseif lost == '2' then
  returned = 0
end
if lost ~= '0' then
  total = g.stock + returned + g.reserved - quantity
end
local stock, reserved, rev = g.stock + returned, g.reserved - quantity, g.rev + 1
if keep > 0 then
  redis.call('HSET', reservations, user, task .. '|' .. units_kept .. '|' .. at .. '|' .. idem)
else
  redis.call('HDEL', reservations, user)
end
if g.sale_limit > 0 then
  add_units(sale_units, g.epoch, user, -quantity)
end
for _, person in ipairs(person_fields(g, item_id, at)) do
  add_units(sale_units, g.epoch, person, -quantity)
end
if idem ~= '' then
  -- The first release knows the quantity of the attempt.
  redis.call('HSETNX', idempotency_keys, user .. ':' .. idem, task .. '|' .. item_id .. '|' .. ordered)
  redis.call('PEXPIRE', idempotency_keys, idempotency_ttl)
end
if expired == '1' then
  count_expiry(expiries, user, string.match(at, ',(.*)$'))
end
redis.call('HSET', item, 'stock', stock, 'reserved', reserved, 'total', total, 'rev', rev)
if g.shares then
  take_share(g, share_of(string.match(at, ',(.*)$') or ''), -quantity, quantity - returned)
  redis.call('HSET', item, 'kept', shares_text(g))
end
return { 1, stock, rev, epoch }
