-- adjust: adds units to the stock, or removes available units, once per act.
--
-- KEYS  [1] item
-- ARGV  [1] act   [2] units, signed   [3] act that this one undoes, or ""
-- Reply { 1 done | 2 done before | 3 the act to undo was not counted in this epoch
--         | 0 fewer available than are to be removed | -1 no gate | -2 the gate is
--         being built, or is to be, and units are to be removed, stock, revision, epoch }
--
-- Invariant: stock + reserved = total at every moment; an act counts once in an epoch,
-- and the build of an epoch writes the acts that it counted.
--
-- Prepended: prelude.lua.

local item = KEYS[1]
local act, units_text, undone_act = unpack(ARGV)

local g = read_gate(item)
if not g.there then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(g.epoch)
if g.state == 'loading' or not g.complete or g.stale and tonumber(units_text) < 0 then
  return { -2, 0, 0, epoch }
end
local acts = redis.call('HGET', item, 'acts') or ''
if string.find(acts, act, 1, true) then
  return { 2, g.stock, g.rev, epoch }
end
if undone_act ~= '' and not string.find(acts, undone_act, 1, true) then
  return { 3, g.stock, g.rev, epoch }
end
local units = tonumber(units_text)
local free = spare_units(g, nil, redis_time())
if units < 0 and free + units < 0 then -- what a share keeps is not removed
  return { 0, free, g.rev, epoch }
end
local stock, rev = g.stock + units, g.rev + 1
redis.call('HSET', item, 'stock', stock, 'total', g.total + units, 'rev', rev, 'acts', acts .. ' ' .. act)
return { 1, stock, rev, epoch }
