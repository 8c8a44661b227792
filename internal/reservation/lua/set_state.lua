-- gate: opens, holds or ends the gate of an item, as a revision of its sale says.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   [2] revision of the sale   [3] gate: open, paused or ended
-- Reply 1 done | 0 not of this epoch, being built, or a newer revision was here
--
-- Keeps true: of two acts on a sale the later one decides, in whatever order they
-- arrive. Stock and holders are not touched.

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'srev')
if not f[1] or f[1] == 'loading' or f[2] ~= ARGV[1] then
  return 0
end
if f[3] and tonumber(f[3]) > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'gate', ARGV[3], 'srev', ARGV[2])
return 1
