-- retake: takes units for an order that had lapsed and is paid after all.
--
-- KEYS  [1] item   [2] holders
-- ARGV  [1] user   [2] name of the claim   [3] quantity   [4] the order, under
--       whose name the units were held before
-- Reply { 1 taken | 2 taken before under this name | 0 fewer left
--         | -1 no gate | -2 the gate is being built, or of another life of the
--         server, or the units held before are not back yet | -3 the user holds
--         units for another order,
--         stock, revision, epoch }
--
-- Keeps true: stock + reserved = loaded stock; units are taken once per name. The
-- window and the state of the gate do not matter: the buyer was let in before.

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'stock', 'reserved', 'rev', 'run')
if not (f[1] and f[2]) then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(f[2])
if f[1] == 'loading' or (f[6] or '') ~= run() or not (f[3] and f[4] and f[5]) then
  return { -2, 0, 0, epoch }
end
local stock, reserved, rev, quantity = tonumber(f[3]), tonumber(f[4]), tonumber(f[5]), tonumber(ARGV[3])
local held = redis.call('HGET', KEYS[2], ARGV[1])
if held then
  local holder = string.match(held, '^[^|]*')
  if holder == ARGV[2] then
    return { 2, stock, rev, epoch }
  end
  return { holder == ARGV[4] and -2 or -3, stock, rev, epoch }
end
if stock < quantity then
  return { 0, stock, rev, epoch }
end
local now = redis.call('TIME')
stock, reserved, rev = stock - quantity, reserved + quantity, rev + 1
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. '|' .. quantity .. '|' .. (now[1] * 1000 + math.floor(now[2] / 1000)) .. '|')
redis.call('HSET', KEYS[1], 'stock', stock, 'reserved', reserved, 'rev', rev)
return { 1, stock, rev, epoch }
