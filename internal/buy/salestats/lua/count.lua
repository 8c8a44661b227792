-- count: adds a batch of one process to the figures of a sale, once.
--
-- KEYS  [1] counters   then one for each stretch of seconds
-- ARGV  [1] process   [2] number of the batch, increasing   [3] TTL of the counters, s
--       [4] TTL of a stretch, s   [5] how many counters follow, then field, n, …
--       then for each stretch: how many fields follow, then field, n, …; a field
--       that begins with "=" is set to n instead of incremented by n, and one that
--       begins with "?" only if there were no counters before
-- Reply 1 counted | 0 counted before
--
-- Invariant: a batch that is sent again after a lost reply counts once.

local process, number, counters_ttl, stretch_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local mark = 'p:' .. process
if tonumber(redis.call('HGET', KEYS[1], mark) or '0') >= tonumber(number) then
  return 0
end
local first = redis.call('EXISTS', KEYS[1]) == 0
redis.call('HSET', KEYS[1], mark, number)
local a = 5
for k = 1, #KEYS do
  local n = tonumber(ARGV[a])
  for i = 1, n do
    local field, by = ARGV[a + 2 * i - 1], ARGV[a + 2 * i]
    local kind = string.sub(field, 1, 1)
    if kind == '=' or (kind == '?' and first) then
      redis.call('HSET', KEYS[k], string.sub(field, 2), by)
    elseif kind ~= '?' then
      redis.call('HINCRBY', KEYS[k], field, by)
    end
  end
  a = a + 2 * n + 1
  redis.call('EXPIRE', KEYS[k], k == 1 and counters_ttl or stretch_ttl)
end
return 1
