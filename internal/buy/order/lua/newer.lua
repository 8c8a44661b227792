-- Writes records unless Redis already has a newer revision of them.
--
-- KEYS[i]   bucket of records: hash of field → JSON text with "revision":N (all of
--           one shard)
-- ARGV[1]   TTL of a bucket in milliseconds, from now on
--           then for each record: its bucket (1, 2, …), its field, its revision, its JSON
-- reply     number of records written
--
-- Invariant: the revision of a record never decreases while the bucket exists. A record
-- of the same revision is written again: it has the same content, copied later. Records
-- contain no free text, so the pattern matches only the revision.
-- A record that cannot be parsed is replaced.
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
