-- line: says whether people wait in line for an item. While they do, units that
-- come back are theirs: reserve answers "sold out" to everybody else. It holds for
-- three seconds and is said anew several times a second; if nobody says it any
-- more, the units are on open sale.
--
-- KEYS  [1] item   [2] holders   then for each user the lapses in the sale
-- ARGV  [1] '1' somebody waits | '0' nobody does   [2] lapses that call for a wait
--       then each user
-- Reply { 1 the gate is open | 0 it is there, and closed | -1 no gate, or one
--         that is being built, stock, then for each user: holder of the user's
--         units, or '', how long the user has to wait after lapses, ms }
--
-- Keeps true: a gate that is not there is not made.

local reply = { -1, 0 }
if #ARGV > 2 then
  local held = redis.call('HMGET', KEYS[2], unpack(ARGV, 3))
  for i = 1, #ARGV - 2 do
    local wait, lapses = 0, KEYS[2 + i]
    if tonumber(redis.call('GET', lapses) or '0') >= tonumber(ARGV[2]) then
      wait = math.max(0, redis.call('PTTL', lapses))
    end
    reply[1 + 2 * i], reply[2 + 2 * i] = string.match(held[i] or '', '^[^|]*'), wait
  end
end
local f = redis.call('HMGET', KEYS[1], 'gate', 'closes', 'stock', 'run')
if not (f[1] and f[2] and f[3]) or f[1] == 'loading' or (f[4] or '') ~= run() then
  return reply
end
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
if ARGV[1] == '1' then
  redis.call('HSET', KEYS[1], 'line', now + 3000)
else
  redis.call('HDEL', KEYS[1], 'line')
end
local open = f[1] == 'open' and now < tonumber(f[2])
reply[1], reply[2] = open and 1 or 0, tonumber(f[3])
return reply
