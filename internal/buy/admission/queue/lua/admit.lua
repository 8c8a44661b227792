-- admit: one pass over the waiting room of an item: frees tickets without a heartbeat,
-- closes the room when the sale has ended, admits the first buyers. Loaded behind
-- reservation/lua/prelude.lua, captcha/lua/answer.lua, path/lua/unused.lua and path/lua/buyers.lua.
--
-- KEYS  [1] item   [2] reservations  [3] waiting room  [4] tickets of users  [5] beats
--       [6] stats of the room   [7] rooms of the shard    [8] permits
--       [9] units per user of the sale   [10] admissions
--       Tickets and records of captchas are in the same slot.
-- ARGV  [1] "1" = the sale is over
--       [2] unused path tokens at a time per thousand units left; 0 = no limit
--       [3] buyers admitted per second; 0 = no limit
--       [4] lifetime of a path token, ms   [5] time without a heartbeat that frees a
--           ticket, ms
--       [6] prefix of the key of a ticket
--       [7] "sale|item"          [8] maximum of tickets to free or close in this pass;
--           so many more are read than may be admitted
--       [9] score after which to admit: where the previous pass ended;
--           below -2^52 = from the head
--       [10] time that expiries are counted, ms   [11] prefix of the key of the expiries of
--       a user   [12] maximum of buyers to admit in this pass
--       [13] TTL of a record of captchas, ms   [14] prefix of the records of the sale
--
-- Reply { admitted, freed, closed, waiting, units left (-1 = no gate), skipped,
--         score where this pass ended, 1 = continue in another pass,
--         expiry of the path tokens of admitted buyers (Unix ms),
--         user and last reported position (-1 = none) of each closed ticket,
--         ticket and user of each admitted buyer,
--         user of each admission that expired unused }
-- Passes search beyond that limit once a second, over all processes.
--
-- Invariant: buyers are admitted in the order of their scores, except those who have an
-- unused path token for another item of the sale: a buyer has one at a time, and an
-- admission does not take it away. They are skipped, keep their tickets, and are the
-- first again once that token is used or expires; so are buyers from whom access shares keep
-- what is left. Buyers who may not buy any more leave,
-- with the reason in the ticket: holding or limit. The unused path tokens of an item
-- never exceed the ratio of its stock; no second admits more than the inflow; the ticket
-- names epoch and expiry of its path token. An admission that expired unused is
-- replied once, whatever the state of the gate and whether others wait. Any number of processes may run it at once.
local item, holders, queue, places, beats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local item_id = string.match(ARGV[7], '[^|]*$')
local room, rooms, permits, units, admissions = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local ratio, inflow, life, patience, prefix = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local most, at = tonumber(ARGV[8]), tonumber(ARGV[9])
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end

local admitted, freed, closed, left, passed, more, unserved, served, missed = 0, 0, 0, -1, 0, 0, {}, {}, {}
local function done()
  local waiting = redis.call('ZCARD', queue)
  if waiting == 0 and redis.call('EXISTS', admissions) == 0 then redis.call('SREM', rooms, ARGV[7]) end
  return {admitted, freed, closed, waiting, left, passed, at, more, now + life, unserved, served, missed}
end

local function out(ticket, status, why)
  redis.call('ZREM', queue, ticket)
  redis.call('ZREM', beats, ticket)
  local user = redis.call('HGET', prefix .. ticket, 'user')
  if user then
    redis.call('HSET', prefix .. ticket, 'status', status, 'why', why or '')
    if redis.call('HGET', places, user) == ticket then redis.call('HDEL', places, user) end
  end
end

local gate = read_gate(item)
local stock = gate.stock
left = stock or -1

-- An expired token was not used if its permit is still there, was removed as unused, or
-- went away with a former gate.
local ended = redis.call('ZRANGEBYSCORE', admissions, '-inf', ms(now), 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #ended, 2 do
  local user, till = ended[i], tonumber(ended[i + 1])
  local ticket = prefix .. (redis.call('HGET', places, user) or '')
  local t = redis.call('HMGET', ticket, 'expires', 'epoch')
  local own = tonumber(t[1] or '0') == math.abs(till)
  redis.call('ZREM', admissions, user)
  if till < 0 or tonumber(redis.call('ZSCORE', permits, user) or '0') == till
    or (own and gate.epoch and tonumber(t[2]) < tonumber(gate.epoch) and redis.call('HEXISTS', holders, user) == 0) then
    table.insert(missed, user)
    if own then redis.call('HSET', ticket, 'why', 'unused') end
  end
end

if ARGV[1] == '1' or gate.state == 'ended' then
  for _, ticket in ipairs(redis.call('ZRANGE', queue, 0, most - 1)) do
    local t = redis.call('HMGET', prefix .. ticket, 'user', 'ahead')
    if t[1] then
      table.insert(unserved, t[1])
      table.insert(unserved, tonumber(t[2] or '-1'))
    end
    out(ticket, 'CLOSED')
    closed = closed + 1
  end
  return done()
end

-- No heartbeat can arrive while Redis or every process is down: then the time without a
-- heartbeat counts from now.
local awake = redis.call('HMGET', room, 'pass', 'resumed')
if awake[1] and now - tonumber(awake[1]) > 5000 then
  redis.call('HSET', room, 'resumed', ms(now))
  awake[2] = now
end
if redis.call('EXISTS', room) == 1 then redis.call('HSET', room, 'pass', ms(now)) end
if now - tonumber(awake[2] or '0') < patience then patience = now end
for _, ticket in ipairs(redis.call('ZRANGEBYSCORE', beats, '-inf', ms(now - patience), 'LIMIT', 0, most)) do
  out(ticket, 'LEFT')
  freed = freed + 1
end
if refusal(gate, now) or stock <= 0 or now < gate.waitlist_until and not gate.shares then return done() end

local free = tonumber(ARGV[12])
if ratio > 0 then
  local expired = redis.call('ZRANGEBYSCORE', permits, 0, ms(now), 'LIMIT', 0, 100) -- bounded: later calls remove the rest
  expire_unused(permits, admissions, now, ARGV[11], expired)
  local unused = unused_permits(permits, now, life)
  free = math.min(free, math.floor((stock * ratio + 999) / 1000) - unused)
end
local figures = redis.call('HMGET', room, 'second', 'let', 'window', 'now', 'last')
local second, let = math.floor(now / 1000), 0
if tonumber(figures[1]) == second then let = tonumber(figures[2]) end
if inflow > 0 then free = math.min(free, inflow - let) end

local function has_room(user, persons)
  local room, shared, _, uses = read_room(gate, item_id, units, user, persons)
  return room > 0 and shared ~= 0 and uses ~= 0
end

local notes = notes_of(ARGV[11])
local book = open_records(ARGV[14], now, tonumber(ARGV[13]))
local changed = {} -- user and record, …
local heads = {}
if free > 0 then heads = redis.call('ZRANGEBYSCORE', queue, '(' .. ms(at), '+inf', 'WITHSCORES', 'LIMIT', 0, free + most) end
for i = 1, #heads, 2 do
  if admitted == free then break end
  local ticket = heads[i]
  at = tonumber(heads[i + 1])
  local t = redis.call('HMGET', prefix .. ticket, 'user', 'persons')
  local user, persons = t[1], t[2] or ''
  local record = parse_record(user and read_records(book, { user })[1])
  local holding = user and redis.call('HEXISTS', holders, user) == 1
  if not user or holding then
    out(ticket, 'LEFT', holding and 'holding')
    freed = freed + 1
  elseif not has_room(user, persons) then
    out(ticket, 'LEFT', 'limit')
    freed = freed + 1
  elseif gate.shares and free_units(gate, share_of(persons), now) <= 0 then
    passed = passed + 1
  elseif record.permits ~= '' and record.permits ~= permits and tonumber(redis.call('ZSCORE', record.permits, user) or '0') > now then
    passed = passed + 1
  else
    admitted = admitted + 1
    table.insert(served, ticket)
    table.insert(served, user)
    changed[#changed + 1], changed[#changed + 2] = user, record_text(record.created, record.tries, '', permits)
    redis.call('ZADD', permits, ms(now + life), user)
    redis.call('ZADD', admissions, ms(now + life), user)
    note_path(notes, user, (split_persons(persons)), permits)
    redis.call('HSET', prefix .. ticket, 'status', 'ADMITTED', 'epoch', gate.epoch, 'expires', ms(now + life), 'score', ms(at))
    redis.call('ZREM', queue, ticket)
    redis.call('ZREM', beats, ticket)
  end
end
if admitted < free and #heads == 2 * (free + most) then
  local first = tonumber(ARGV[9]) < -2 ^ 52
  if not first or tonumber(redis.call('HGET', room, 'deep') or '0') ~= second then more = 1 end
  if first then redis.call('HSET', room, 'deep', ms(second)) end
end
write_records(book, changed)
write_notes()
if admitted > 0 then
  keep_permits(permits, life + ARGV[10])
  keep_permits(admissions, life + ARGV[10])
  local window, n, last = math.floor(now / 10000), 0, 0 -- windows of ten seconds: see look.lua
  if tonumber(figures[3]) == window then
    n, last = tonumber(figures[4]), tonumber(figures[5])
  elseif tonumber(figures[3]) == window - 1 then
    last = tonumber(figures[4])
  end
  redis.call('HSET', room, 'second', ms(second), 'let', let + admitted, 'window', ms(window), 'now', n + admitted, 'last', last)
end
return done()
