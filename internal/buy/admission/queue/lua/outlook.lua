-- outlook: what a waiting buyer may expect; prepended to the scripts that report it.
--
-- read_outlook(room, permits, inflow, now)  what outlook needs of an item: room is the key of
--   the stats of the room, inflow the buyers admitted per second, 0 = no limit
-- outlook(gate, read, ahead)  seconds to wait and chance in percent (each -1 = unknown).
--   The wait is the number ahead divided by the admissions per second in the present and the
--   previous window of ten seconds. The chance is the units left divided by the buyers who
--   come first (ahead, and with an unused path token) plus this one; 100 only if all buyers
--   ahead may buy up to the limit and a unit still remains.
local function read_outlook(room, permits, inflow, now)
  local figures = redis.call('HMGET', room, 'window', 'now', 'last')
  local window, let = math.floor(now / 10000), 0
  if tonumber(figures[1]) == window then let = tonumber(figures[2]) + tonumber(figures[3]) end
  if tonumber(figures[1]) == window - 1 then let = tonumber(figures[2]) end
  local rate = let / (10 + (now % 10000) / 1000)
  if inflow > 0 and (rate == 0 or rate > inflow) then rate = inflow end
  return { rate = rate, unused = redis.call('ZCOUNT', permits, '(' .. string.format('%.0f', now), '+inf') }
end

local function outlook(gate, read, ahead)
  local wait, first = -1, ahead + read.unused
  if read.rate > 0 then wait = math.ceil((ahead + 1) / read.rate) end
  local chance = math.min(99, math.floor(100 * gate.stock / (first + 1)))
  if gate.stock > first * (gate.limit or 1) then chance = 100 end
  return wait, chance
end

