-- Put behind reservation/lua/run.lua. One pass over the waiting room of an item: frees the places of those not heard
-- of, closes the room when all is over, admits the first in line.
--
-- KEYS  [1] item   [2] holders  [3] queue  [4] places  [5] beats
--       [6] room   [7] rooms    [8] permits
--       Tickets, and the paths and captchas that they name, lie in the same slot.
-- ARGV  [1] "1" = the sale is over for good
--       [2] unused paths at a time per thousand units left; 0 = any number
--       [3] people admitted in one second; 0 = any number
--       [4] life of a path, ms   [5] how long a place is kept unheard of, ms
--       [6] what stands before a ticket's id in its key
--       [7] "sale|item"          [8] most places to free, or to close, in this pass;
--           so many more people are looked at than may be admitted
--       [9] score in the line after which to admit: where the pass before ended;
--           below -2^52 = from the head
--       then a token for each one who may be admitted in this pass
--
-- Replies {admitted, freed, closed, waiting, units left (-1 = no gate), passed
-- over, score where this pass ended, 1 = look further on in another pass}.
-- Passes look further on than this once a second, whoever makes them.
--
-- Keeps true: the first in line is admitted first, but for those who have an
-- unused path to another item of the sale: a person has one at a time, and no turn
-- takes away what the person did not give up. They are passed over, keep their
-- places, and are the first again once that path is used or lapses. The unused
-- paths of an item are never more than the ratio of its stock allows; no second
-- admits more than the inflow; a path is written in the step that admits. Any
-- number of processes may run it at once.
local item, holders, queue, places, beats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local room, rooms, permits = KEYS[6], KEYS[7], KEYS[8]
local ratio, inflow, life, patience, prefix = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local most, at, tokens = tonumber(ARGV[8]), tonumber(ARGV[9]), 9
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end

local admitted, freed, closed, left, passed, more = 0, 0, 0, -1, 0, 0
local function done()
  local waiting = redis.call('ZCARD', queue)
  if waiting == 0 then redis.call('SREM', rooms, ARGV[7]) end
  return {admitted, freed, closed, waiting, left, passed, at, more}
end

local function out(ticket, status)
  redis.call('ZREM', queue, ticket)
  redis.call('ZREM', beats, ticket)
  local user = redis.call('HGET', prefix .. ticket, 'user')
  if user then
    redis.call('HSET', prefix .. ticket, 'status', status)
    if redis.call('HGET', places, user) == ticket then redis.call('HDEL', places, user) end
  end
end

local gate = read_gate(item)
local stock = gate.stock
left = stock or -1
if ARGV[1] == '1' or gate.state == 'ended' or (gate.closes and now >= gate.closes) then
  for _, ticket in ipairs(redis.call('ZRANGE', queue, 0, most - 1)) do
    out(ticket, 'CLOSED')
    closed = closed + 1
  end
  return done()
end

-- Nobody could be heard while Redis, or every process, was away: then silence counts from now.
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
if refusal(gate, now) or now < gate.waitlist_until or stock <= 0 then return done() end

local free = #ARGV - tokens
if ratio > 0 then
  local lapsed = redis.call('ZRANGEBYSCORE', permits, '-inf', ms(now), 'LIMIT', 0, 100) -- bounded: others come by
  if #lapsed > 0 then redis.call('ZREM', permits, unpack(lapsed)) end
  local unused = redis.call('ZCOUNT', permits, '(' .. ms(now), '+inf')
  free = math.min(free, math.floor((stock * ratio + 999) / 1000) - unused)
end
local figures = redis.call('HMGET', room, 'second', 'let', 'window', 'now', 'last')
local second, let = math.floor(now / 1000), 0
if tonumber(figures[1]) == second then let = tonumber(figures[2]) end
if inflow > 0 then free = math.min(free, inflow - let) end

local heads = {}
if free > 0 then heads = redis.call('ZRANGEBYSCORE', queue, '(' .. ms(at), '+inf', 'WITHSCORES', 'LIMIT', 0, free + most) end
for i = 1, #heads, 2 do
  if admitted == free then break end
  local ticket = heads[i]
  at = tonumber(heads[i + 1])
  local t = redis.call('HMGET', prefix .. ticket, 'user', 'path', 'captcha')
  local user, path, captcha = t[1], t[2], t[3]
  local other = captcha and redis.call('HGET', captcha, 'path')
  if not user or redis.call('HEXISTS', holders, user) == 1 then
    out(ticket, 'LEFT')
    freed = freed + 1
  elseif other and other ~= path and redis.call('EXISTS', other) == 1 then
    passed = passed + 1
  else
    admitted = admitted + 1
    local token = ARGV[tokens + admitted]
    redis.call('HSET', captcha, 'path', path, 'permits', permits, 'user', user)
    redis.call('PEXPIRE', captcha, life)
    redis.call('SET', path, gate.epoch .. '|' .. token, 'PX', life)
    redis.call('ZADD', permits, ms(now + life), user)
    redis.call('HSET', prefix .. ticket, 'status', 'ADMITTED', 'value', gate.epoch .. '|' .. token,
      'token', token, 'expires', ms(now + life))
    redis.call('ZREM', queue, ticket)
    redis.call('ZREM', beats, ticket)
  end
end
if admitted < free and #heads == 2 * (free + most) then
  local first = tonumber(ARGV[9]) < -2 ^ 52
  if not first or tonumber(redis.call('HGET', room, 'deep') or '0') ~= second then more = 1 end
  if first then redis.call('HSET', room, 'deep', ms(second)) end
end
if admitted > 0 then
  redis.call('PEXPIRE', permits, life)
  local window, n, last = math.floor(now / 10000), 0, 0 -- ten seconds: see look.lua
  if tonumber(figures[3]) == window then
    n, last = tonumber(figures[4]), tonumber(figures[5])
  elseif tonumber(figures[3]) == window - 1 then
    last = tonumber(figures[4])
  end
  redis.call('HSET', room, 'second', ms(second), 'let', let + admitted, 'window', ms(window), 'now', n + admitted, 'last', last)
end
return done()
