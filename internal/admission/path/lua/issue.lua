-- Trades a right captcha answer for a path: the short-lived right to try for one
-- item. Put behind captcha/lua/answer.lua.
--
-- KEYS[1]  item: gate, epoch, opens, closes, stock, line
-- KEYS[2]  holders: user → "task|…"
-- KEYS[3]  path of the user to the item: "epoch|token"; lapses
-- KEYS[4]  permits of the item: user → when the unused path lapses (Unix ms)
-- KEYS[5]  captcha: open challenges of the user in the sale, and the path that
--          the last one was traded for. That path and its permits may be of
--          another item; they lie in the same slot.
-- KEYS[6]  queue: who waits for the item
-- KEYS[7]  lapses: how many holds of the user in the sale lapsed unpaid
-- ARGV[1]  user
-- ARGV[2]  token
-- ARGV[3]  life of the path, milliseconds
-- ARGV[4]  unused paths at a time per thousand units left; 0 = any number
-- ARGV[5]  challenge that was answered
-- ARGV[6]  MAC of the answer
-- ARGV[7]  "1" = a right answer is needed, "0" = it is not
-- ARGV[8]  "1" = everybody passes through the waiting room now
-- ARGV[9]  lapses that call for a wait
--
-- Replies {outcome, now (Unix ms), opens (Unix ms, 0 = not known), detail}:
--   issued       detail = when the path lapses, Unix ms
--   not_loaded   no gate here yet
--   paused       the gate is held, or being built
--   not_started  by Redis TIME; nothing was used up
--   ended
--   holding      the user holds units of the item; detail = task
--   lapses       too many holds lapsed; detail = wait, milliseconds
--   captcha      detail = "verdict|kind": see answer.lua
--   sold_out     nothing left now, or it is kept for a waitlist; the answer was not used up
--   no_permit    all permits are out, or others wait; the answer was not used up
--
-- Keeps true: a path comes only after the opening, for a right answer that is
-- used up in the same step; a person has at most one unused path in a sale; the
-- unused paths of an item are never more than the ratio of its stock allows;
-- nobody overtakes those who wait.
-- Running it again with the same token changes nothing: a lost reply may be asked
-- for again. All checks come before all writes, but for the count of a wrong answer.
local item, holders, path, permits, captcha = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local user, token, life, ratio = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function ms(n) return string.format('%.0f', n) end

local gate = redis.call('HMGET', item, 'gate', 'epoch', 'opens', 'closes', 'stock', 'line')
local opens, closes, stock = tonumber(gate[3]), tonumber(gate[4]), tonumber(gate[5])
local function reply(outcome, detail) return {outcome, ms(now), ms(opens or 0), detail or ''} end

if not gate[1] then return reply('not_loaded') end
if gate[1] == 'ended' or (closes and now >= closes) then return reply('ended') end
if gate[1] ~= 'open' or not (gate[2] and opens and closes and stock) then return reply('paused') end
if now < opens then return reply('not_started') end

local held = redis.call('HGET', holders, user)
if held then return reply('holding', string.match(held, '^[^|]*')) end

if tonumber(redis.call('GET', KEYS[7]) or '0') >= tonumber(ARGV[9]) then
  return reply('lapses', ms(redis.call('PTTL', KEYS[7])))
end

local value = gate[2] .. '|' .. token
if redis.call('GET', path) == value then
  return reply('issued', ms(now + math.max(0, redis.call('PTTL', path))))
end

if ARGV[7] == '1' then
  local verdict, kind = answer(captcha, ARGV[5], ARGV[6], now)
  if verdict ~= 'right' then return reply('captcha', verdict .. '|' .. kind) end
end

if stock <= 0 or now < tonumber(gate[6] or '0') then return reply('sold_out') end
local own = tonumber(redis.call('ZSCORE', permits, user) or '0')
if own <= now and (ARGV[8] == '1' or redis.call('ZCARD', KEYS[6]) > 0) then return reply('no_permit') end
if ratio > 0 then
  local unused = redis.call('ZCOUNT', permits, '(' .. ms(now), '+inf')
  if own > now then unused = unused - 1 end
  if unused >= math.floor((stock * ratio + 999) / 1000) then return reply('no_permit') end
end

use_up(captcha)
local before = redis.call('HMGET', captcha, 'path', 'permits', 'user')
if before[1] and before[1] ~= path then
  redis.call('DEL', before[1])
  redis.call('ZREM', before[2], before[3])
end
redis.call('HSET', captcha, 'path', path, 'permits', permits, 'user', user)
redis.call('PEXPIRE', captcha, life)
redis.call('SET', path, value, 'PX', life)
local lapsed = redis.call('ZRANGEBYSCORE', permits, '-inf', ms(now), 'LIMIT', 0, 100) -- bounded: others come by
if #lapsed > 0 then redis.call('ZREM', permits, unpack(lapsed)) end
redis.call('ZADD', permits, ms(now + life), user)
redis.call('PEXPIRE', permits, life)
return reply('issued', ms(now + life))
