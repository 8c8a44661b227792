-- look: reads the state of a ticket and, for its owner, writes the heartbeat. Loaded behind
-- reservation/lua/prelude.lua and outlook.lua.
--
-- KEYS  [1] item  [2] waiting room  [3] beats  [4] stats  [5] permits  [6] ticket
--       [7] reservations
-- ARGV  [1] ticket   [2] "1" = write the heartbeat   [3] inflow per second, 0 = no limit
--       [4] "1" = the sale is over
-- Reply { status ("" = no such ticket), now (Unix ms), ahead, seconds to wait, chance in
--         percent (each -1 = unknown), epoch and expiry (Unix ms) of the unused path
--         token (0 = none), why the ticket ended (see admit.lua; "" = not noted;
--         unused: the path token expired unused), nonce of
--         its number in the draw ("" = none), person keys of its path token }
--
-- Invariant: the number ahead never grows; it is reported only after the draw, at the
-- opening, so that leaving and entering again for a better draw gains nothing.
local item, queue, beats, room, permits, ticket = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end

local t = redis.call('HMGET', ticket, 'status', 'ahead', 'epoch', 'expires', 'user', 'value', 'why', 'nonce', 'persons')
local epoch = t[3] or t[6] and string.match(t[6], '^%d+') -- release 0.1 admitted with "epoch|token"
if not t[1] then return {'', ms(now), -1, -1, -1, '0', '0', '', '', ''} end
local gate = read_gate(item)
if t[1] == 'ADMITTED' and t[5] and gate.there and (ARGV[4] == '1' or gate.state == 'ended') and redis.call('HEXISTS', KEYS[7], t[5]) == 0 then
  t[1] = 'CLOSED' -- the admission bought nothing, and cannot any more
  redis.call('HSET', ticket, 'status', t[1]) -- the reservations leave Redis with the gate
end
if t[1] == 'ADMITTED' and epoch and tonumber(t[4]) > now and tonumber(redis.call('ZSCORE', permits, t[5]) or '0') == tonumber(t[4]) then
  return {t[1], ms(now), -1, -1, -1, epoch, t[4], '', t[8] or '', t[9] or ''}
end
if t[1] ~= 'WAITING' then
  local why = t[7] or ''
  if why == '' and tonumber(t[4] or '0') > 0 and tonumber(t[4]) <= now and tonumber(redis.call('ZSCORE', permits, t[5]) or '0') == tonumber(t[4]) then why = 'unused' end
  return {t[1], ms(now), -1, -1, -1, '0', '0', why, t[8] or '', ''}
end

if ARGV[2] == '1' then redis.call('ZADD', beats, 'XX', ms(now), ARGV[1]) end
local opens, stock = gate.opens, gate.stock
local reported = tonumber(t[2])
if not (opens and stock) or now < opens then return {t[1], ms(now), reported or -1, -1, -1, '0', '0', t[7] or '', t[8] or '', ''} end

local ahead = redis.call('ZRANK', queue, ARGV[1]) or 0
if reported and reported < ahead then ahead = reported end
if reported ~= ahead then redis.call('HSET', ticket, 'ahead', ahead) end

local wait, chance = outlook(gate, read_outlook(room, permits, tonumber(ARGV[3]), now), ahead)
return {t[1], ms(now), ahead, wait, chance, '0', '0', t[7] or '', t[8] or '', ''}
