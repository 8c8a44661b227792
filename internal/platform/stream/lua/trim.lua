-- Removes the entries that every group of a stream has read and acknowledged.
-- KEYS[1] stream
-- Reply: number of removed entries.
-- Invariant: no entry is removed that is unread or pending in any group.
-- A stream without a group keeps all entries, because its group may be created later.
-- The last delivered entry stays, so that a trimmed stream is never empty. It is
-- one script because otherwise a stream that is emptied and refilled between the
-- check and the trim would lose unread entries.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end

-- A stream id is "milliseconds-sequence"; its text does not sort in the order of ids.
local function before(a, b)
  local am, as = string.match(a, '^(%d+)-(%d+)$')
  local bm, bs = string.match(b, '^(%d+)-(%d+)$')
  if am ~= bm then
    return tonumber(am) < tonumber(bm)
  end
  return tonumber(as) < tonumber(bs)
end

local lowest
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local info = {}
  for i = 1, #group, 2 do
    info[group[i]] = group[i + 1]
  end
  local id = info['last-delivered-id']
  local pending = redis.call('XPENDING', KEYS[1], info['name'])
  if pending[1] > 0 and before(pending[2], id) then
    id = pending[2]
  end
  if not string.find(id, '-', 1, true) then
    id = id .. '-0'
  end
  if not lowest or before(id, lowest) then
    lowest = id
  end
end
if not lowest then
  return 0
end
return redis.call('XTRIM', KEYS[1], 'MINID', '=', lowest)
