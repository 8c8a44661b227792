-- adjust: puts units on sale, or takes units nobody has off it, once per act.
--
-- KEYS  [1] item
-- ARGV  [1] act   [2] units, signed   [3] act that this one takes back, or ""
-- Reply { 1 done | 2 done before | 3 the act to take back was not counted here
--         | 0 fewer left than are to be taken | -1 no gate | -2 the gate is
--         being built, stock, revision, epoch }
--
-- Keeps true: stock + reserved = total, at every instant; an act counts once in
-- an epoch, and the build of an epoch writes down the acts that it counted.

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'stock', 'total', 'rev', 'acts')
if not (f[1] and f[2]) then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(f[2])
if f[1] == 'loading' or not (f[3] and f[4] and f[5]) then
  return { -2, 0, 0, epoch }
end
local stock, total, rev, acts = tonumber(f[3]), tonumber(f[4]), tonumber(f[5]), f[6] or ''
if string.find(acts, ARGV[1], 1, true) then
  return { 2, stock, rev, epoch }
end
if ARGV[3] ~= '' and not string.find(acts, ARGV[3], 1, true) then
  return { 3, stock, rev, epoch }
end
local units = tonumber(ARGV[2])
if stock + units < 0 then
  return { 0, stock, rev, epoch }
end
stock, total, rev = stock + units, total + units, rev + 1
redis.call('HSET', KEYS[1], 'stock', stock, 'total', total, 'rev', rev, 'acts', acts .. ' ' .. ARGV[1])
return { 1, stock, rev, epoch }
