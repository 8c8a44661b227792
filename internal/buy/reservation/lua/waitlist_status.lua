-- waitlist_status: records whether buyers wait for an item and returns the status of
-- its gate. While buyers wait, released units are for them: reserve answers "sold out"
-- to all others. The record expires after three seconds and is renewed several times a
-- second; if it is not renewed, the units are for sale again.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
-- ARGV  [1] '1' buyers wait | '0' no buyer waits | '' not known: the record stays
--       [2] prefix of the expiries in the sale   [3] id of the item
--       then each user, and the user's person keys and share
-- Reply { 1 the gate is open | 2 it is paused | 0 it has ended | -1 no gate, or it is
--         being built, stock, then for each user: task of the user's reservation, or '',
--         wait of the user after expiries, ms, units that the limits leave
--         to the user, -1 = no gate, the letter of the person key, or of the code, that leaves the
--         fewest, '' = the account, and the units that no share keeps from the user }
--
-- Invariant: a missing gate is not created.
--
-- Prepended: prelude.lua, expiries.lua and other_path.lua.

local item, reservations, sale_units = KEYS[1], KEYS[2], KEYS[3]
local waiting, expiries, item_id = ARGV[1], ARGV[2], ARGV[3]

local reply = { -1, 0 }
local g = read_gate(item)
local now = redis_time()

-- path_of returns the letter of a person key with an unused path token of another account.
local function path_of(user, persons)
  local keys, paths = {}, {}
  local counted = split_persons(persons)
  for key in string.gmatch(counted, '[^,]+') do keys[#keys + 1] = key end
  if #keys == 0 then return nil end
  local values = redis.call('HMGET', expiries .. 'persons', unpack(keys))
  for i, key in ipairs(keys) do paths[key] = values[i] end
  return other_path(paths, user, counted, now)
end

for i = 4, #ARGV, 2 do
  local user, persons = ARGV[i], ARGV[i + 1]
  local room, by = -1, ''
  if g.limit then
    local shared, letter, uses
    room, shared, letter, uses = read_room(g, item_id, sale_units, user, persons)
    local path = shared == 1 and path_of(user, persons)
    if path then shared, letter = 0, path end
    if shared and shared < room then room, by = shared, letter end
    if uses and uses < room then room, by = uses, 'k' end
  end
  local keys = expiry_keys(expiries, user, persons, {})
  read_expiries(keys)
  local r = #reply
  reply[r + 1] = string.match(redis.call('HGET', reservations, user) or '', '^[^|]*')
  reply[r + 2], reply[r + 3], reply[r + 4] = expiry_wait(keys, 1, #keys), room, by
  reply[r + 5] = g.stock and (spare_units(g, share_of(persons), now)) or 0
end
if not g.loaded or g.state == 'loading' then
  return reply
end
if waiting == '1' then
  redis.call('HSET', item, 'line', now + 3000)
elseif waiting == '0' then
  redis.call('HDEL', item, 'line')
end
local open = g.state == 'open' and 1 or 2
if g.state == 'ended' or now >= g.closes then open = 0 end
reply[1], reply[2] = open, g.stock
return reply
