-- count_former: counts what an account has taken in a sale under further person keys, before the
-- account is deleted.
--
-- KEYS  [1] units per user of the sale   [2] prefix of the expiries in the sale
--       then two for each item: item, reservations
-- ARGV  [1] user   [2] the keys   then the id of each item
-- Reply epoch of the gates | 0 one is missing, stale or being built: nothing is changed
--
-- Invariant: a second call changes nothing. The units return with the reservation. Expiries are
-- added to those of a key unless they were counted there: the hash "persons" has the keys of the
-- user, also for a path token that expires later.
--
-- Prepended: prelude.lua and expiries.lua.

local sale_units, expiries = KEYS[1], KEYS[2]
local user, keys = ARGV[1], ARGV[2]

local gates, epoch = {}, redis.call('HGET', sale_units, 'epoch')
for i = 3, #KEYS, 2 do
  local g = read_gate(KEYS[i])
  if not g.loaded or g.state == 'loading' or g.epoch ~= epoch then return 0 end
  gates[#gates + 1] = g
end

-- missing returns the keys that a list does not have, with commas before them.
local function missing(list)
  local more = ''
  for key in string.gmatch(keys, '[^,]+') do
    if not string.find(list, key, 1, true) then more = more .. ',' .. key end
  end
  return more
end

for i, g in ipairs(gates) do
  local reservations, item = KEYS[2 * i + 2], ARGV[2 + i]
  local record = redis.call('HGET', reservations, user)
  local head, at, key = string.match(record or '', '^([^|]*|%d+|)([^|]*)(|.*)$')
  local more = at and missing(at) or ''
  if more ~= '' then
    redis.call('HSET', reservations, user, head .. at .. more .. key)
    for _, field in ipairs(person_fields(g, item, more)) do
      add_units(sale_units, epoch, field, tonumber(string.match(head, '|(%d+)')))
    end
  end
end

local noted = redis.call('HGET', expiries .. 'persons', user) or ''
local more = missing(noted)
local n, left = tonumber(redis.call('GET', expiries .. user) or 0), redis.call('PTTL', expiries .. user)
if more ~= '' then
  for key in string.gmatch(more, '[^,]+') do
    if n > 0 then
      redis.call('INCRBY', expiries .. key, n)
      redis.call('PEXPIRE', expiries .. key, math.max(left, redis.call('PTTL', expiries .. key)))
    end
  end
  redis.call('HSET', expiries .. 'persons', user, noted == '' and string.sub(more, 2) or noted .. more)
  redis.call('PEXPIRE', expiries .. 'persons', 2 * EXPIRIES_KEPT)
end
return tonumber(epoch)
