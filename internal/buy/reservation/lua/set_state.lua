-- set_state: opens, pauses or ends the gate of an item for a revision of its sale, and
-- sets the times of that revision.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   [2] revision of the sale   [3] state: open, paused or ended
--       [4] opens (Unix ms)   [5] closes (Unix ms)
-- Reply { 1 done | 0 there is no gate, it is being built or has a later revision, or, for
--         open, has another epoch, epoch of the gate, revision of the sale that set its
--         state } (0 = none)
--
-- Invariant: of two changes of a sale the later one applies, in whatever order they
-- arrive; nothing comes after the end of a sale. Pausing and ending apply to a gate of
-- every epoch: the process that took the next epoch may have crashed before it began to
-- build. Stock and reservations do not change. The times of shares move with the opening.
--
-- Prepended: prelude.lua.

local item = KEYS[1]
local epoch_wanted, revision, state, opens, closes = unpack(ARGV)

local g = read_gate(item)
local epoch, srev = tonumber(g.epoch or 0), g.srev or 0
if not g.there or g.state == 'loading' or (state == 'open' and g.epoch ~= epoch_wanted) then
  return { 0, epoch, srev }
end
if srev > tonumber(revision) and state ~= 'ended' then
  return { 0, epoch, srev }
end
if g.shares and g.opens then
  for _, s in ipairs(g.shares) do s.till = s.till + opens - g.opens end
  redis.call('HSET', item, 'kept', shares_text(g))
end
redis.call('HSET', item, 'gate', state, 'srev', string.format('%.0f', math.max(srev, revision)), 'opens', opens, 'closes', closes)
return { 1, epoch, srev }
