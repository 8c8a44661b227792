-- issue: exchanges right captcha answers for path tokens, the short-lived rights to one
-- attempt on an item, for a batch of requests on items of one shard. Loaded behind
-- reservation/lua/prelude.lua, captcha/lua/answer.lua, unused.lua and buyers.lua.
--
-- KEYS  eight for each item: item
--         reservations: user → "task|…"
--         permits: user → when the unused path token expires (Unix ms)
--         waiting room   admissions of the waiting room   units per user of the sale
--         prefix of the records of captchas of the sale, with the permit that the last
--         answer was exchanged for. That permit may be of another item, in the same slot
--         prefix of the expiries of users in the sale: of unpaid reservations and unused
--         tokens
-- ARGV  [1] number of requests   [2] number of items
--       [3] TTL of a path token, ms   [4] TTL of a record of captchas, ms
--       [5] how long expired permits are kept to be counted, ms
--       [6] life of a captcha, ms
--       then for each item: unused path tokens at a time per thousand units left, 0 = no
--       limit; "1" = every buyer passes through the waiting room now; its id
--       then for each request: its item (1, 2, …), user, name of the request (random),
--       verdict on the answer ("" = none is required), creation of its challenge, person
--       keys of the user ("" = none)
--
-- Reply { now (Unix ms), for each request: outcome, detail; for each item: opens (Unix ms,
--       0 = unknown), what the next new user gets: one of the outcomes not_loaded to ended,
--       sold_out, no_permit, or issued }
--   issued       detail = "epoch|when the path token expires, Unix ms"
--   not_loaded   no gate, or a stale one
--   paused       the gate is paused, or being built
--   not_started  by Redis TIME; nothing was used up
--   ended, holding (also of a gate that is paused or ended), limit, person, expiries: see buyers.lua
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
-- reply. A user has one request in a call, so that each is decided by what Redis has and by
-- the permits of the requests before it. The script decides all requests in order and
-- writes last, except the counts of unused tokens.
local now = redis_time()
local n, n_items = tonumber(ARGV[1]), tonumber(ARGV[2])
local life, record_ttl, kept, captcha_life = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local first_request = 7 + 3 * n_items -- argument

local function ms(n) return string.format('%.0f', n) end
local fresh = ms(now + life) -- once: number formatting is slow in Redis

local function request(i)
  local a = first_request + 6 * (i - 1)
  return unpack(ARGV, a, a + 5)
end

local items, numbers = {}, {} -- numbers: of the requests among those of their items
for i = 1, n_items do
  local key, reservations, permits, room, admissions, units, records, expiries = unpack(KEYS, 8 * i - 7, 8 * i)
  local ratio, queued, id = unpack(ARGV, 4 + 3 * i, 6 + 3 * i)
  local it = open_item(key, records, expiries, now, record_ttl)
  it.id, it.reservations, it.permits, it.room, it.admissions, it.units_key = id, reservations, permits, room, admissions, units
  it.ratio, it.queued = tonumber(ratio), queued == '1'
  it.granted, it.renewed = {}, {} -- score and user, …
  it.fresh = it.epoch and it.epoch .. '|' .. fresh
  items[i] = it
end
for i = 1, n do
  local item, user, _, _, _, persons = request(i)
  numbers[i] = ask(items[tonumber(item)], user, persons)
end
for i = 1, n_items do read_buyers(items[i]) end

-- taken returns why an item has no token for one more user, nil = it has one. The user's own
-- unused token, if any, is not counted. share is the user's, nil = none.
local function taken(it, own, share)
  it.free = it.free or free_units(it, nil, now)
  if (share and free_units(it, share, now) or it.free) <= 0 then return 'sold_out' end
  if own <= now and it.queued then return 'no_permit' end
  it.waiting = it.waiting or redis.call('ZCARD', it.room)
  if it.waiting > 0 then return 'no_permit' end
  if it.ratio <= 0 then return nil end
  if not it.unused then
    it.unused, it.most = unused_permits(it.permits, now, life), math.floor((it.stock * it.ratio + 999) / 1000)
  end
  local others = own > now and own <= now + life and it.unused - 1 or it.unused
  if others >= it.most then return 'no_permit' end
end

local voided = {} -- permits and user, …

-- decide returns the outcome of request c on an item, and the detail.
local function decide(it, c, user, name, verdict, created)
  local outcome, detail = refuse_buyer(it, c, user, now)
  if outcome then return outcome, detail end
  local own, record = it.own[c], parse_record(it.records[c])
  if own > now and record.request == name then return 'issued', it.epoch .. '|' .. ms(own) end
  local wrong = refuse_answer(it, user, record, verdict, created, now, captcha_life, it.opens)
  if wrong then return 'captcha', wrong end
  local why = taken(it, own, it.share[c])
  if why then return why end

  if record.permits ~= '' and record.permits ~= it.permits then voided[#voided + 1], voided[#voided + 2] = record.permits, user end
  local changed = it.changed
  local k = #changed
  changed[k + 1], changed[k + 2] = user, used_up(verdict == '' and record.created or created, name, it.permits)
  note_path(it.notes, user, it.counted[c], it.permits)
  if it.unused and not (own > now and own <= now + life) then it.unused = it.unused + 1 end
  local granted = it.granted
  k = #granted
  if own <= now then
    granted[k + 1], granted[k + 2] = fresh, user
    return 'issued', it.fresh
  end
  local till = ms(own - 1)
  granted[k + 1], granted[k + 2] = till, user
  it.renewed[#it.renewed + 1], it.renewed[#it.renewed + 2] = till, user
  return 'issued', it.epoch .. '|' .. till
end

local reply = { now }
for i = 1, n do
  local item, user, name, verdict, created = request(i)
  local outcome, detail = decide(items[tonumber(item)], numbers[i], user, name, verdict, created)
  reply[2 * i], reply[2 * i + 1] = outcome, detail or ''
end
for i = 1, n_items do
  local it = items[i]
  reply[#reply + 1] = it.opens or 0
  local next_user = it.refused or taken(it, 0) or 'issued'
  if next_user == 'sold_out' and it.shares then next_user = 'issued' end -- not for the buyers of a share
  reply[#reply + 1] = next_user
end

for i = 1, #voided, 2 do void_unused(voided[i], voided[i + 1], now) end
write_notes()
for i = 1, n_items do
  local it = items[i]
  write_records(it.book, it.changed)
  if #it.granted > 0 then
    local expired = redis.call('ZRANGEBYSCORE', it.permits, 0, ms(now), 'LIMIT', 0, 100) -- bounded: later calls remove the rest
    expire_unused(it.permits, it.admissions, now, it.expiries, expired)
    redis.call('ZADD', it.permits, unpack(it.granted))
    if #it.renewed > 0 then redis.call('ZADD', it.admissions, 'XX', unpack(it.renewed)) end
    keep_permits(it.permits, life + kept)
  end
end
return reply
