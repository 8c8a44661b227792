-- Keeps the newer of two records: the one in Redis or the one at hand.
--
-- KEYS[i]        record, JSON text with "revision":N (all of one shard)
-- ARGV[1]        life of a record in milliseconds
-- ARGV[2i]       revision of the record at hand for KEYS[i]
-- ARGV[2i + 1]   its JSON
-- reply          how many records were written
--
-- Keeps true: the revision under a key never falls while the key lives. A record of
-- the same revision is written again: it has the same content, copied later. Records
-- carry no free text, so that the pattern finds nothing but the revision.
-- A record that cannot be read is replaced.
local written = 0
for i = 1, #KEYS do
  local old = redis.call('GET', KEYS[i])
  local have = old and tonumber(string.match(old, '"revision":(%d+)')) or -1
  if tonumber(ARGV[2 * i]) >= have then
    redis.call('SET', KEYS[i], ARGV[2 * i + 1], 'PX', ARGV[1])
    written = written + 1
  end
end
return written
