-- Keeps the newer of two records: the one in Redis or the one at hand.
--
-- KEYS[i]   bucket of records: hash of field → JSON text with "revision":N (all of
--           one shard)
-- ARGV[1]   life of a bucket in milliseconds, from now on
--           then for each record: its bucket (1, 2, …), its field, its revision, its JSON
-- reply     how many records were written
--
-- Keeps true: the revision of a record never falls while the bucket lives. A record of
-- the same revision is written again: it has the same content, copied later. Records
-- carry no free text, so that the pattern finds nothing but the revision.
-- A record that cannot be read is replaced.
local fields, at = {}, {}
for b = 1, #KEYS do
  fields[b], at[b] = {}, {}
end
for a = 2, #ARGV, 4 do
  local b = tonumber(ARGV[a])
  local n = #fields[b] + 1
  fields[b][n], at[b][n] = ARGV[a + 1], a
end
local written = 0
for b = 1, #KEYS do
  local there = redis.call('HMGET', KEYS[b], unpack(fields[b]))
  local news, newest = {}, {}
  for i, a in ipairs(at[b]) do
    local field, revision = fields[b][i], tonumber(ARGV[a + 2])
    local have = newest[field] or there[i] and tonumber(string.match(there[i], '"revision":(%d+)')) or -1
    if revision >= have then
      newest[field] = revision
      news[#news + 1] = field
      news[#news + 1] = ARGV[a + 3]
      written = written + 1
    end
  end
  if #news > 0 then
    redis.call('HSET', KEYS[b], unpack(news))
    redis.call('PEXPIRE', KEYS[b], ARGV[1])
  end
end
return written
