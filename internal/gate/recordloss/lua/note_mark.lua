-- note_mark: remembers the highest mark of the record.
--
-- KEYS  [1] hash: mark. No TTL.
-- ARGV  [1] mark that is committed in Postgres
-- Reply the highest mark
--
-- Invariant: the mark never falls while Redis keeps its data.

local have = tonumber(redis.call('HGET', KEYS[1], 'mark') or '0')
if have >= tonumber(ARGV[1]) then
  return have
end
redis.call('HSET', KEYS[1], 'mark', ARGV[1])
return tonumber(ARGV[1])
