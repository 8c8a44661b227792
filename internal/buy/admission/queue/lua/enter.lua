-- enter: gives a user a ticket of the waiting room of an item. Loaded behind
-- reservation/lua/prelude.lua, captcha/lua/answer.lua and path/lua/unused.lua.
--
-- KEYS  [1] item        [2] reservations   [3] path token of the user in release 0.1,
--       whose processes admit by it        [4] captcha
--       [5] waiting room: ticket → score     [6] tickets: user → ticket
--       [7] beats: ticket → last heartbeat (Unix ms)
--       [8] stats of the room: seq and the figures of admit.lua
--       [9] rooms of the shard with buyers: "sale|item"
--       [10] the new ticket           [11] expiries of the user in the sale
--       [12] tickets of the session   [13] permits   [14] units per user of the sale
--       [15] admissions
-- ARGV  [1] user      [2] new ticket   [3] number in the draw, 1 to 2^52
--       [4] claim on the answer   [5] TTL of a record of captchas, ms   [6] "1" = a right answer is required
--       [7] prefix of the key of a ticket
--       [8] sale      [9] item         [10] lifetime of the records, ms
--       [11] number of expiries that causes a wait
--       [12] session, "" = none: the ticket becomes that session's
--       [13] time that expiries are counted, ms   [14] prefix of [11], without the user
--       [15] nonce of the number in the draw, "" = it is random
--
-- Reply { outcome, now (Unix ms), opens (Unix ms, 0 = unknown), detail }:
--   placed  detail = ticket, the new or the present one. An admitted ticket whose path token
--           a rebuild of the gate took away waits again, at its score.
--   not_loaded, paused, ended, holding (detail = task), limit (of the sale is used up; detail = limit), expiries (detail = wait, ms),
--   captcha (detail = verdict), sold_out: no ticket, nothing used up
--
-- Invariant: a user has one ticket in a room, however often enter is called. Scores of
-- entries before the opening are -draw, all below zero; later scores count up from 1. So
-- early buyers are in random order, before all later ones, who are in order of arrival;
-- after the opening no new buyer comes before an earlier one. All checks precede all
-- writes, except the counts of a wrong answer and of an unused token,
-- and the heartbeat of a present ticket.
local item, reservations, path, captcha = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local queue, places, beats, room, rooms, ticket = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local user, id, life = ARGV[1], ARGV[2], ARGV[10]
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end

local gate = read_gate(item)
local function reply(outcome, detail) return {outcome, ms(now), ms(gate.opens or 0), detail or ''} end

local function stay(ticket)
  if ARGV[12] == '' then return end
  redis.call('HSET', ARGV[7] .. ticket, 'session', ARGV[12])
  redis.call('SADD', KEYS[12], ticket)
  redis.call('PEXPIRE', KEYS[12], life)
end

local before = redis.call('HGET', places, user)
if before then
  local t = redis.call('HMGET', ARGV[7] .. before, 'status', 'expires', 'epoch', 'score')
  if t[1] == 'WAITING' then
    redis.call('ZADD', beats, 'XX', ms(now), before)
    stay(before)
    return reply('placed', before)
  end
  if t[1] == 'ADMITTED' and tonumber(t[2]) > now and tonumber(redis.call('ZSCORE', KEYS[13], user) or '0') == tonumber(t[2]) then
    stay(before)
    return reply('placed', before)
  end
  if t[1] == 'ADMITTED' and tonumber(t[2]) <= now and (tonumber(redis.call('ZSCORE', KEYS[13], user) or '0') == tonumber(t[2])
    or tonumber(redis.call('ZSCORE', KEYS[15], user) or '0') == -tonumber(t[2])) then
    redis.call('HSET', ARGV[7] .. before, 'why', 'unused') -- admit.lua no longer finds this ticket once there is another
  end
  -- A rebuild of the gate took the path token away: the buyer is first again.
  if t[1] == 'ADMITTED' and t[4] and tonumber(t[2]) > now and gate.loaded and tonumber(t[3]) < tonumber(gate.epoch)
    and redis.call('HEXISTS', reservations, user) == 0 then
    redis.call('ZADD', queue, t[4], before)
    redis.call('ZADD', beats, ms(now), before)
    redis.call('HSET', ARGV[7] .. before, 'status', 'WAITING')
    redis.call('HDEL', ARGV[7] .. before, 'epoch', 'expires', 'score')
    redis.call('SADD', rooms, ARGV[8] .. '|' .. ARGV[9])
    stay(before)
    return reply('placed', before)
  end
end

local why = refusal(gate, now)
if why == 'not_loaded' or gate.state == 'loading' then return reply(why) end
local existing = redis.call('HGET', reservations, user)
if existing then return reply('holding', string.match(existing, '^[^|]*')) end
if why and why ~= 'not_started' then return reply(why) end
if gate.sale_limit > 0 and (units_in_sale(KEYS[14], gate.epoch, user) or 0) >= gate.sale_limit then
  return reply('limit', ms(gate.sale_limit))
end
if gate.stock > 0 then expire_unused(KEYS[13], KEYS[15], now, ARGV[14], ARGV[13], {user}) end
if tonumber(redis.call('GET', KEYS[11]) or '0') >= tonumber(ARGV[11]) then
  return reply('expiries', ms(redis.call('PTTL', KEYS[11])))
end
local record = read_record(captcha)
local right = false
if ARGV[6] == '1' then
  local verdict, created = answer(record, ARGV[4], now, now < gate.opens and 0 or gate.opens)
  if verdict == 'wrong' then
    redis.call('HSET', captcha, record_fields(record))
    redis.call('PEXPIRE', captcha, ARGV[5])
  end
  if verdict ~= 'right' then return reply('captcha', verdict) end
  use_up(record, created)
  right = true
end
if now >= gate.opens and (gate.stock <= 0 or now < gate.waitlist_until) then return reply('sold_out') end

if right then
  redis.call('HSET', captcha, record_fields(record))
  redis.call('PEXPIRE', captcha, ARGV[5])
end
local score = '-' .. ARGV[3]
redis.call('HSETNX', room, 'seq', 0)
if now >= gate.opens then score = ms(redis.call('HINCRBY', room, 'seq', 1)) end
redis.call('ZADD', queue, score, id)
redis.call('ZADD', beats, ms(now), id)
redis.call('HSET', places, user, id)
redis.call('HSET', ticket, 'sale', ARGV[8], 'item', ARGV[9], 'user', user, 'status', 'WAITING', 'path', path, 'captcha', captcha)
if now < gate.opens and ARGV[15] ~= '' then redis.call('HSET', ticket, 'nonce', ARGV[15]) end
stay(id)
redis.call('SADD', rooms, ARGV[8] .. '|' .. ARGV[9])
for _, key in ipairs({queue, places, beats, room, ticket}) do redis.call('PEXPIRE', key, life) end
return reply('placed', id)
