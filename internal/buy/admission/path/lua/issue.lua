-- issue: exchanges a right captcha answer for a path token: the short-lived right to one
-- attempt on an item. Loaded behind reservation/lua/prelude.lua, captcha/lua/answer.lua and
-- unused.lua.
--
-- KEYS  [1] item
--       [2] reservations: user → "task|…"
--       [3] permits of the item: user → when the unused path token expires (Unix ms)
--       [4] captcha: record of the user in the sale, with the permit that the last
--           challenge was exchanged for. That permit may be of another item, in the same
--           slot.
--       [5] waiting room of the item
--       [6] expiries of the user in the sale: of unpaid reservations and unused tokens
--       [7] units per user of the sale   [8] admissions of the waiting room
-- ARGV  [1] user
--       [2] name of this request, random
--       [3] TTL of the path token, ms
--       [4] unused path tokens at a time per thousand units left; 0 = no limit
--       [5] claim on the answer   [6] TTL of a record of captchas, ms
--       [7] "1" = a right answer is required
--       [8] "1" = every buyer passes through the waiting room now
--       [9] number of expiries that causes a wait   [10] that wait, ms
--       [11] prefix of [6], without the user
--
-- Reply { outcome, now (Unix ms), opens (Unix ms, 0 = unknown), detail }:
--   issued       detail = "epoch|when the path token expires, Unix ms"
--   not_loaded   no gate, or a stale one
--   paused       the gate is paused, or being built
--   not_started  by Redis TIME; nothing was used up
--   ended
--   holding      the user has a reservation, also of a gate that is paused or ended;
--                detail = task
--   limit        the user's reservations use up the limit of the sale; detail = limit
--   expiries     too many expiries; detail = wait, ms
--   captcha      detail = verdict: see answer.lua
--   sold_out     no unit for sale, or units are for the waitlist; answer not used up
--   no_permit    no permit is free, or others wait; answer not used up
--
-- Invariant: a path token is issued only after the opening, for a right answer that is
-- used up in the same step; a buyer has at most one unused path token in a sale; the
-- unused path tokens of an item never exceed the ratio of its stock; buyers in the waiting
-- room come first, also before a user with an unused token. A token is known by its
-- expiry: a second one expires a millisecond before the first, which is void then. A repeat
-- of the same request changes nothing, so that the script may be repeated after a lost
-- reply. All checks precede all writes, except the counts of a wrong answer and of an
-- unused token.
local item, reservations, permits, captcha = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local user, request, life, ratio = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end

local gate = read_gate(item)
local stock = gate.stock
local function reply(outcome, detail) return {outcome, ms(now), ms(gate.opens or 0), detail or ''} end

local why = refusal(gate, now)
if why == 'not_loaded' or gate.state == 'loading' then return reply(why) end
local existing = redis.call('HGET', reservations, user)
if existing then return reply('holding', string.match(existing, '^[^|]*')) end
if why then return reply(why) end
if gate.sale_limit > 0 and (units_in_sale(KEYS[7], gate.epoch, user) or 0) >= gate.sale_limit then
  return reply('limit', ms(gate.sale_limit))
end

local wait, prefix = ARGV[10], ARGV[11]
if stock > 0 then expire_unused(permits, KEYS[8], now, prefix, wait, {user}) end
if tonumber(redis.call('GET', KEYS[6]) or '0') >= tonumber(ARGV[9]) then
  return reply('expiries', ms(redis.call('PTTL', KEYS[6])))
end

local own = tonumber(redis.call('ZSCORE', permits, user) or '0')
local record = read_record(captcha)
if own > now and record.request == request then return reply('issued', gate.epoch .. '|' .. ms(own)) end

if ARGV[7] == '1' then
  local verdict, created = answer(record, ARGV[5], now, gate.opens)
  if verdict == 'wrong' then
    redis.call('HSET', captcha, record_fields(record))
    redis.call('PEXPIRE', captcha, ARGV[6])
  end
  if verdict ~= 'right' then return reply('captcha', verdict) end
  use_up(record, created)
end

if stock <= 0 or now < gate.waitlist_until then return reply('sold_out') end
if (own <= now and ARGV[8] == '1') or redis.call('ZCARD', KEYS[5]) > 0 then return reply('no_permit') end
if ratio > 0 then
  local unused = unused_permits(permits, now, life)
  if own > now and own <= now + life then unused = unused - 1 end
  if unused >= math.floor((stock * ratio + 999) / 1000) then return reply('no_permit') end
end

local till = own > now and own - 1 or now + life
if record.permits and record.permits ~= permits then void_unused(record.permits, record.user, now) end
redis.call('HSET', captcha, 'permits', permits, 'user', user, 'request', request, record_fields(record))
redis.call('PEXPIRE', captcha, ARGV[6])
local expired = redis.call('ZRANGEBYSCORE', permits, 0, ms(now), 'LIMIT', 0, 100) -- bounded: later calls remove the rest
expire_unused(permits, KEYS[8], now, prefix, wait, expired)
redis.call('ZADD', permits, ms(till), user)
if own > now then redis.call('ZADD', KEYS[8], 'XX', ms(till), user) end
keep_permits(permits, life + wait)
return reply('issued', gate.epoch .. '|' .. ms(till))
