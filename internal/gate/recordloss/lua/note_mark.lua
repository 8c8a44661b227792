-- note_mark: remembers the highest mark of the record.
--
-- KEYS  [1] hash: mark. No TTL.
-- ARGV  [1] mark that is committed in Postgres
-- Reply the highest mark
--
-- Invariant: the mark never falls while Redis keeps its data.

local marks = KEYS[1]
local mark = ARGV[1]

local have = tonumber(redis.call('HGET', marks, 'mark') or '0')
if have >= tonumber(mark) then
  return have
end
redis.call('HSET', marks, 'mark', mark)
return tonumber(mark)
