-- reserve: attempts to take stock, many in one call, all on items of one shard.
--
-- KEYS  [1] order stream of the shard
--       then four for each item: item, holders, permits, idempotency records of its sale
--       then the buckets of task records
--       then for each attempt its path, and its tries where they are counted
-- ARGV  [1] how many attempts   [2] life of idempotency and task records, ms
--       [3] how many items      [4] how many buckets   [5] 1 = tries are counted
--       [6] [7] names of the stream's fields for task and message
--       then for each item: sale, id
--       then for each attempt: its item and its bucket (1, 2, …), user, task, token,
--       quantity, idempotency key, message, and where tries are counted those of
--       the user at once (0 = any number) and how long one takes to come back (ms)
-- Reply Redis time, ms; then for each item: epoch, opens (ms);
--       then for each attempt: code, remaining, revision, and behind the codes 2, 3,
--       8 and 9 a task
-- Codes 1 accepted        2 replayed: same idempotency key and input
--       3 idempotency key used with other input
--       4 not loaded      5 paused      6 not started     7 ended
--       8 path invalid (task: what the user holds, or "")
--       9 already holding (task: which)
--       10 over the limit 11 sold out   12 fewer left than wanted
--       13 too many tries (remaining: wait, ms)
--
-- Keeps true: stock + reserved = loaded stock, at every instant; a unit is taken
-- if and only if its holder is recorded and its message is in the stream. Redis
-- does not roll back, so all is read first, then all attempts are decided, and all
-- writes come last, the stock's before the others'; what an attempt took is known
-- to those behind it. Reads and writes are one command for the whole batch where
-- Redis has one. Only tries are counted at once. That is GCRA, as in package
-- ratelimit, in whole milliseconds; an attempt that was sent again after a lost
-- reply is answered before it counts.
-- A gate that was built in another life of the server (run) is as good as none:
-- what the server remembers may be old.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local at = string.format('%d', now) -- once: Redis renders numbers slowly

local life = run()
local n, ttl = tonumber(ARGV[1]), ARGV[2]
local nItems, nBuckets, counted = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local perKeys, width = counted and 2 or 1, counted and 10 or 8
local firstKey = 2 + 4 * nItems + nBuckets  -- of the attempts
local first = 8 + 2 * nItems                -- argument of the attempts
local reply = { now }

-- What is known of the items. Those of one sale share what their idempotency keys took.
local items, sales = {}, {}
for i = 1, nItems do
  local k = 2 + (i - 1) * 4
  local f = redis.call('HMGET', KEYS[k], 'gate', 'epoch', 'opens', 'closes', 'limit', 'stock', 'reserved', 'rev', 'run', 'line')
  local it = { loaded = (f[9] or '') == life and f[1] and f[2] and f[3] and f[4] and f[5] and f[6] and f[7] and f[8] }
  if it.loaded then
    it.gate, it.era, it.opens, it.closes = f[1], f[2], tonumber(f[3]), tonumber(f[4])
    it.limit, it.stock, it.reserved, it.rev = tonumber(f[5]), tonumber(f[6]), tonumber(f[7]), tonumber(f[8])
    it.line = tonumber(f[10] or 0) -- until when (ms) units are kept for those who wait in line
    reply[2 * i], reply[2 * i + 1] = tonumber(it.era), it.opens
  else
    it.stock, it.rev = 0, 0
    reply[2 * i], reply[2 * i + 1] = 0, 0
  end
  it.key, it.holdersKey, it.permitsKey, it.idemKey = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local sale, id = ARGV[6 + 2 * i], ARGV[7 + 2 * i]
  it.input = '|' .. id .. '|'
  it.task = '","sale":"' .. sale .. '","item":"' .. id .. '","quantity":'
  it.asking, it.users, it.idems = {}, {}, {}                   -- who asks
  it.got, it.paths, it.holders, it.records = {}, {}, {}, {}    -- who got a unit here
  it.holds = {}
  it.taken = sales[sale] or {}
  sales[sale] = it.taken
  items[i] = it
end

-- What is known of those who ask.
local paths = {}
for i = 1, n do
  local a = first + (i - 1) * width
  local it = items[tonumber(ARGV[a])]
  local c = #it.asking + 1
  it.asking[c], it.users[c], it.idems[c] = i, ARGV[a + 2], ARGV[a + 2] .. ':' .. ARGV[a + 6]
  paths[i] = KEYS[firstKey + (i - 1) * perKeys]
end
local tokens = redis.call('MGET', unpack(paths))
local held, before, idems = {}, {}, {}
for i = 1, nItems do
  local it = items[i]
  if #it.asking > 0 then
    local holders = redis.call('HMGET', it.holdersKey, unpack(it.users))
    local known = redis.call('HMGET', it.idemKey, unpack(it.idems))
    for c, attempt in ipairs(it.asking) do
      held[attempt], before[attempt], idems[attempt] = holders[c], known[c], it.idems[c]
    end
  end
end

-- try takes a token of a user's bucket and returns 0, or how long to wait for one.
local function try(key, burst, every)
  local depth = burst * every
  local tat = tonumber(redis.call('GET', key) or 0)
  if tat < now then
    tat = now
  elseif tat > now + depth then -- of a stricter limit, that was loosened
    tat = now + depth
    redis.call('SET', key, tat, 'PX', depth)
  end
  local ahead = tat + every - now
  if ahead > depth then return ahead - depth end
  redis.call('SET', key, now + ahead, 'PX', ahead)
  return 0
end

local used = {} -- paths of those who got a unit here
local orders = {}

-- decide returns the code of attempt i and the task that it names.
local function decide(i, a, it)
  local user, task, quantity = ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 5])
  local past = it.taken[idems[i]] or before[i]
  local known = past and string.match(past, '^[^|]*')
  if counted and ARGV[a + 8] ~= '0' and known ~= task then
    local wait = try(KEYS[firstKey + (i - 1) * perKeys + 1], tonumber(ARGV[a + 8]), tonumber(ARGV[a + 9]))
    if wait > 0 then return 13, wait end
  end
  if past then
    return string.sub(past, #known + 1) == it.input .. quantity and 2 or 3, known
  end
  if not it.loaded then return 4 end
  if it.gate == 'ended' or now >= it.closes then return 7 end
  if it.gate ~= 'open' then return 5 end
  if now < it.opens then return 6 end
  local hold = it.holds[user] or held[i] and string.match(held[i], '^[^|]*') or ''
  if used[paths[i]] or tokens[i] ~= it.era .. '|' .. ARGV[a + 4] then return 8, hold end
  if hold ~= '' then return 9, hold end
  if quantity > it.limit then return 10 end
  if it.stock == 0 or now < it.line then return 11 end
  if it.stock < quantity then return 12 end
  it.stock, it.reserved, it.rev = it.stock - quantity, it.reserved + quantity, it.rev + 1
  past = task .. it.input .. quantity
  it.taken[idems[i]], used[paths[i]], it.holds[user] = past, true, task
  local u = #it.got + 1
  it.got[u], it.paths[u] = user, paths[i]
  it.holders[2 * u - 1], it.holders[2 * u] = user, task .. '|' .. quantity .. '|' .. at .. '|' .. ARGV[a + 6]
  it.records[2 * u - 1], it.records[2 * u] = idems[i], past
  orders[#orders + 1] = i
  return 1
end

for i = 1, n do
  local a = first + (i - 1) * width
  local it = items[tonumber(ARGV[a])]
  local code, more = decide(i, a, it)
  local r = #reply
  reply[r + 1], reply[r + 2], reply[r + 3] = code, it.stock, it.rev
  if code == 13 then
    reply[r + 2], reply[r + 3] = more, 0
  elseif more then
    reply[r + 4] = more
  end
end

for i = 1, nItems do
  local it = items[i]
  if #it.got > 0 then
    redis.call('HSET', it.key, 'stock', it.stock, 'reserved', it.reserved, 'rev', it.rev)
    redis.call('HSET', it.holdersKey, unpack(it.holders))
    redis.call('HSET', it.idemKey, unpack(it.records))
    redis.call('PEXPIRE', it.idemKey, ttl)
    redis.call('DEL', unpack(it.paths))
    redis.call('ZREM', it.permitsKey, unpack(it.got))
  end
end
local times = ',"status":"SUBMITTED","revision":1,"createdAtMs":' .. at .. ',"updatedAtMs":' .. at .. '}'
local buckets = {}
for o = 1, #orders do
  local a = first + (orders[o] - 1) * width
  local it, bucket, task = items[tonumber(ARGV[a])], tonumber(ARGV[a + 1]), ARGV[a + 3]
  local records = buckets[bucket]
  if not records then
    records = {}
    buckets[bucket] = records
  end
  local r = #records
  records[r + 1] = 'task:' .. task
  records[r + 2] = '{"id":"' .. task .. '","user":"' .. ARGV[a + 2] .. it.task .. ARGV[a + 5] .. times
  redis.call('XADD', KEYS[1], '*', 'epoch', it.era, 'at', at, ARGV[6], task, ARGV[7], ARGV[a + 7])
end
for bucket, records in pairs(buckets) do
  local key = KEYS[1 + 4 * nItems + bucket]
  redis.call('HSET', key, unpack(records))
  redis.call('PEXPIRE', key, ttl)
end
return reply
