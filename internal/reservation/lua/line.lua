-- line: says whether people wait in line for an item. While they do, units that
-- come back are theirs: reserve answers "sold out" to everybody else. It holds for
-- three seconds and is said anew several times a second; if nobody says it any
-- more, the units are on open sale.
--
-- KEYS  [1] item   [2] holders
-- ARGV  [1] '1' somebody waits | '0' nobody does   [2] user, or ''
-- Reply { 1 the gate is open | 0 it is there, and closed | -1 no gate, or one
--         that is being built, stock, holder of the user's units, or '' }
--
-- Keeps true: a gate that is not there is not made.

local f = redis.call('HMGET', KEYS[1], 'gate', 'closes', 'stock', 'run')
local held = ARGV[2] ~= '' and redis.call('HGET', KEYS[2], ARGV[2]) or ''
held = string.match(held, '^[^|]*')
if not (f[1] and f[2] and f[3]) or f[1] == 'loading' or (f[4] or '') ~= run() then
  return { -1, 0, held }
end
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
if ARGV[1] == '1' then
  redis.call('HSET', KEYS[1], 'line', now + 3000)
else
  redis.call('HDEL', KEYS[1], 'line')
end
local open = f[1] == 'open' and now < tonumber(f[2])
return { open and 1 or 0, tonumber(f[3]), held }
