-- waitlist_status: records whether buyers wait for an item and returns the status of
-- its gate. While buyers wait, released units are for them: reserve answers "sold out"
-- to all others. The record expires after three seconds and is renewed several times a
-- second; if it is not renewed, the units are for sale again.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
--       then for each user the expiries in the sale
-- ARGV  [1] '1' buyers wait | '0' no buyer waits | '' not known: the record stays
--       [2] expiries that call for a wait, then each user
-- Reply { 1 the gate is open | 2 it is paused | 0 it has ended | -1 no gate, or it is
--         being built, stock, then for each user: task of the user's reservation, or '',
--         wait of the user after expiries, ms, units that the limit of the sale leaves
--         to the user, -1 = no limit }
--
-- Invariant: a missing gate is not created.
--
-- Prepended: prelude.lua.

local item, reservations, sale_units = KEYS[1], KEYS[2], KEYS[3]
local waiting, most_expiries = ARGV[1], ARGV[2]

local reply = { -1, 0 }
local g = read_gate(item)
if #ARGV > 2 then
  local records = redis.call('HMGET', reservations, unpack(ARGV, 3))
  for i = 1, #ARGV - 2 do
    local wait, expiries, room = 0, KEYS[3 + i], -1
    if tonumber(redis.call('GET', expiries) or '0') >= tonumber(most_expiries) then
      wait = math.max(0, redis.call('PTTL', expiries))
    end
    if g.sale_limit > 0 then
      room = math.max(0, g.sale_limit - (units_in_sale(sale_units, g.epoch, ARGV[2 + i]) or 0))
    end
    reply[3 * i], reply[3 * i + 1], reply[3 * i + 2] = string.match(records[i] or '', '^[^|]*'), wait, room
  end
end
if not g.loaded or g.state == 'loading' then
  return reply
end
local now = redis_time()
if waiting == '1' then
  redis.call('HSET', item, 'line', now + 3000)
elseif waiting == '0' then
  redis.call('HDEL', item, 'line')
end
local open = g.state == 'open' and 1 or 2
if g.state == 'ended' or now >= g.closes then open = 0 end
reply[1], reply[2] = open, g.stock
return reply
