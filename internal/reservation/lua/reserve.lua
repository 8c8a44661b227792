-- reserve: attempts to take stock, many in one call, all on items of one shard.
--
-- KEYS  [1] order stream of the shard
--       then seven for each attempt: item, holders, path, permits, idem, task, tries
-- ARGV  [1] how many attempts   [2] life of idem and task records, ms
--       then for each attempt: user, task, "token", item id, quantity,
--       idempotency key, task record (JSON without its closing brace),
--       tries of the user at once (0 = any number), how long one takes to come back (ms),
--       how many stream fields follow, then field, value, field, value, …
-- Reply [1] Redis time, ms; then six for each attempt:
--       code, task, remaining, revision, epoch, opens (ms)
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
-- does not roll back, so all attempts are decided first and all writes come after,
-- the stock's before the others'; what an attempt took is known to those behind
-- it, and an item's writes are one command for all who got a unit. Only tries are
-- counted at once. That is GCRA, as in package ratelimit, in whole milliseconds;
-- an attempt that was sent again after a lost reply is answered before it counts.
-- A gate that was built in another life of the server (run) is as good as none:
-- what the server remembers may be old.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local at = string.format('%d', now) -- once: Redis renders numbers slowly

local life = run()
local n, ttl = tonumber(ARGV[1]), ARGV[2]
local items = {}
local ids, used = {}, {} -- idempotency records and paths of those who got a unit here
local orders = {}
local reply = { now }

local function answer(code, task, it)
  local r = #reply
  reply[r + 1], reply[r + 2] = code, task
  if it then
    reply[r + 3], reply[r + 4], reply[r + 5], reply[r + 6] = it.stock, it.rev, it.epoch, it.opens
  else
    reply[r + 3], reply[r + 4], reply[r + 5], reply[r + 6] = 0, 0, 0, 0
  end
end

local function load(key)
  local it = items[key]
  if it == nil then
    local f = redis.call('HMGET', key, 'gate', 'epoch', 'opens', 'closes', 'limit', 'stock', 'reserved', 'rev', 'run', 'line')
    it = false
    if (f[9] or '') == life and f[1] and f[2] and f[3] and f[4] and f[5] and f[6] and f[7] and f[8] then
      it = {
        gate = f[1], era = f[2], epoch = tonumber(f[2]), opens = tonumber(f[3]), closes = tonumber(f[4]),
        limit = tonumber(f[5]), stock = tonumber(f[6]), reserved = tonumber(f[7]), rev = tonumber(f[8]),
        line = tonumber(f[10] or 0), -- until when (ms) units are kept for those who wait in line
        held = {}, paths = {}, users = {}, holders = {} -- of those who got a unit here
      }
    end
    items[key] = it
  end
  return it
end

local function holding(it, key, user)
  if it.held[user] then return it.held[user] end
  local held = redis.call('HGET', key, user)
  return held and string.match(held, '^[^|]*') or ''
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

local a = 3
for i = 1, n do
  local k = 2 + (i - 1) * 7
  local itemKey, holdersKey, pathKey, permitsKey, idemKey, taskKey = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local user, task, token, item, quantity, idem = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4]), ARGV[a + 5]
  local record, burst, fields = ARGV[a + 6], ARGV[a + 7], tonumber(ARGV[a + 9])
  local first = a + 10
  a = first + fields

  local input = '|' .. item .. '|' .. quantity
  local it = load(itemKey)
  local before = ids[idemKey] or redis.call('GET', idemKey)
  local known = before and string.match(before, '^[^|]*')
  local wait = 0
  if burst ~= '0' and known ~= task then wait = try(KEYS[k + 6], tonumber(burst), tonumber(ARGV[first - 2])) end
  if wait > 0 then
    answer(13, '', { stock = wait, rev = 0, epoch = 0, opens = 0 })
  elseif before then
    if string.sub(before, #known + 1) == input then
      answer(2, known, it)
    else
      answer(3, known, it)
    end
  elseif not it then
    answer(4, '', nil)
  elseif it.gate == 'ended' or now >= it.closes then
    answer(7, '', it)
  elseif it.gate ~= 'open' then
    answer(5, '', it)
  elseif now < it.opens then
    answer(6, '', it)
  elseif used[pathKey] or redis.call('GET', pathKey) ~= it.era .. '|' .. token then
    answer(8, holding(it, holdersKey, user), it)
  else
    local held = holding(it, holdersKey, user)
    if held ~= '' then
      answer(9, held, it)
    elseif quantity > it.limit then
      answer(10, '', it)
    elseif it.stock == 0 or now < it.line then
      answer(11, '', it)
    elseif it.stock < quantity then
      answer(12, '', it)
    else
      it.stock, it.reserved, it.rev = it.stock - quantity, it.reserved + quantity, it.rev + 1
      it.key, it.holdersKey, it.permitsKey = itemKey, holdersKey, permitsKey
      it.held[user], ids[idemKey], used[pathKey] = task, task .. input, true
      local u = #it.users + 1
      it.users[u], it.paths[u] = user, pathKey
      it.holders[2 * u - 1], it.holders[2 * u] = user, task .. '|' .. quantity .. '|' .. at .. '|' .. idem
      orders[#orders + 1] = { it.era, idemKey, taskKey, record, first, fields }
      answer(1, task, it)
    end
  end
end

for _, it in pairs(items) do
  if it and it.key then
    redis.call('HSET', it.key, 'stock', it.stock, 'reserved', it.reserved, 'rev', it.rev)
    redis.call('HSET', it.holdersKey, unpack(it.holders))
    redis.call('DEL', unpack(it.paths))
    redis.call('ZREM', it.permitsKey, unpack(it.users))
  end
end
local times = ',"createdAtMs":' .. at .. ',"updatedAtMs":' .. at .. '}'
for i = 1, #orders do
  local o = orders[i]
  redis.call('SET', o[2], ids[o[2]], 'PX', ttl)
  redis.call('SET', o[3], o[4] .. times, 'PX', ttl)
  redis.call('XADD', KEYS[1], '*', 'epoch', o[1], 'at', at, unpack(ARGV, o[5], o[5] + o[6] - 1))
end
return reply
