-- issue: exchanges right captcha answers for path tokens, the short-lived rights to one
-- attempt on an item, for a batch of requests on items of one shard. Loaded behind
-- reservation/lua/prelude.lua, captcha/lua/answer.lua and unused.lua.
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
--   ended
--   holding      the user has a reservation, also of a gate that is paused or ended;
--                detail = task
--   limit        the user's reservations use up the limit of the sale; detail = limit
--   person       the reservations, or an unused token, of other accounts of the same person
--                use up the limit; detail = letter of the key
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
-- reply. A user has one request in a call, so that each is decided by what Redis has and by
-- the permits of the requests before it. The script decides all requests in order and
-- writes last, except the counts of unused tokens and the notes of person keys.
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

local items = {}
for i = 1, n_items do
  local key, reservations, permits, room, admissions, units, records, expiries = unpack(KEYS, 8 * i - 7, 8 * i)
  local ratio, queued, id = unpack(ARGV, 4 + 3 * i, 6 + 3 * i)
  local it = read_gate(key)
  it.refused = refusal(it, now)
  it.closed = it.refused == 'not_loaded' or it.state == 'loading'
  it.reservations, it.permits, it.room, it.admissions, it.units_key = reservations, permits, room, admissions, units
  it.book, it.expiries = open_records(records, now, record_ttl), expiries
  it.ratio, it.queued, it.id = tonumber(ratio), queued == '1', id
  it.requests, it.asking, it.counts = {}, {}, {}
  it.held, it.own, it.units, it.records, it.expired = {}, {}, {}, {}, {} -- by request
  it.granted, it.renewed, it.changed = {}, {}, {} -- score and user, …; user and record, …
  it.fresh = it.epoch and it.epoch .. '|' .. fresh
  items[i] = it
end
for i = 1, n do
  local item, user = request(i)
  local it = items[tonumber(item)]
  local c = #it.requests + 1
  it.requests[c], it.asking[c], it.counts[c] = i, user, it.expiries .. user
end
for i = 1, n_items do
  local it = items[i]
  if not it.closed then
    local held, own, units, records, expired = redis.call('HMGET', it.reservations, unpack(it.asking)), {}, {}, {}, {}
    if not it.refused then
      own = redis.call('ZMSCORE', it.permits, unpack(it.asking))
      records = read_records(it.book, it.asking)
      expired = redis.call('MGET', unpack(it.counts))
      if it.sale_limit > 0 then units = redis.call('HMGET', it.units_key, 'epoch', unpack(it.asking)) end
    end
    for c, r in ipairs(it.requests) do
      it.held[r], it.own[r], it.records[r], it.expired[r] = held[c], tonumber(own[c] or 0), records[c], expired[c]
      it.units[r] = units[1] == it.epoch and tonumber(units[c + 1] or 0) or 0
    end
  end
end

-- taken returns why an item has no token for one more user, nil = it has one. The user's own
-- unused token, if any, is not counted.
local function taken(it, own)
  if it.stock <= 0 or now < it.waitlist_until then return 'sold_out' end
  if own <= now and it.queued then return 'no_permit' end
  it.waiting = it.waiting or redis.call('ZCARD', it.room)
  if it.waiting > 0 then return 'no_permit' end
  if it.ratio <= 0 then return nil end
  it.unused = it.unused or unused_permits(it.permits, now, life)
  local others = own > now and own <= now + life and it.unused - 1 or it.unused
  if others >= math.floor((it.stock * it.ratio + 999) / 1000) then return 'no_permit' end
end

local voided = {} -- permits and user, …
local noted = {}  -- prefix of expiries and person key → user who gets a token in this call

-- other_person returns the letter of a person key by which other accounts use up the limit;
-- nil = none do.
local function other_person(it, user, persons)
  if persons == '' then return nil end
  local room, letter = person_room(it, it.id, it.units_key, ',' .. persons)
  if room == 0 then return letter end
  if room ~= 1 then return nil end
  for key in string.gmatch(persons, '[^,]+') do
    local other = noted[it.expiries .. key]
    if other and other ~= user then return string.sub(key, 1, 1) end
  end
  return other_path(it.expiries, user, persons, now)
end

-- decide returns the outcome of request i on an item, and the detail.
local function decide(i, it, user, name, verdict, created, persons)
  if it.closed then return it.refused end
  if it.held[i] then return 'holding', string.match(it.held[i], '^[^|]*') end
  if it.refused then return it.refused end
  if it.sale_limit > 0 and it.units[i] >= it.sale_limit then return 'limit', ms(it.sale_limit) end
  local other = other_person(it, user, persons)
  if other then return 'person', other end
  local own, expired = it.own[i], tonumber(it.expired[i] or 0)
  if it.stock > 0 and own > 0 and own <= now then
    expire_unused(it.permits, it.admissions, now, it.expiries, {user})
    expired = expired + 1
  end
  if expired >= FREE_EXPIRIES or persons ~= '' then
    local wait = expiry_wait(it.expiries, user, persons)
    if wait > 0 then return 'expiries', ms(wait) end
  end
  local record = parse_record(it.records[i])
  if own > now and record.request == name then return 'issued', it.epoch .. '|' .. ms(own) end
  if verdict ~= '' then
    verdict = answer(record, verdict, created, now, captcha_life, it.opens)
    if verdict == 'wrong' then it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, record_text(record) end
    if verdict ~= 'right' then return 'captcha', verdict end
  end
  local why = taken(it, own)
  if why then return why end

  if record.permits ~= '' and record.permits ~= it.permits then voided[#voided + 1], voided[#voided + 2] = record.permits, user end
  it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, used_up(verdict == '' and record.created or created, name, it.permits)
  for key in string.gmatch(persons, '[^,]+') do noted[it.expiries .. key] = user end
  note_path(it.expiries, user, persons, it.permits)
  if it.unused and not (own > now and own <= now + life) then it.unused = it.unused + 1 end
  if own <= now then
    it.granted[#it.granted + 1], it.granted[#it.granted + 2] = fresh, user
    return 'issued', it.fresh
  end
  local till = ms(own - 1)
  it.granted[#it.granted + 1], it.granted[#it.granted + 2] = till, user
  it.renewed[#it.renewed + 1], it.renewed[#it.renewed + 2] = till, user
  return 'issued', it.epoch .. '|' .. till
end

local reply = { now }
for i = 1, n do
  local item, user, name, verdict, created, persons = request(i)
  local outcome, detail = decide(i, items[tonumber(item)], user, name, verdict, created, persons)
  reply[2 * i], reply[2 * i + 1] = outcome, detail or ''
end
for i = 1, n_items do
  local it = items[i]
  reply[#reply + 1] = it.opens or 0
  reply[#reply + 1] = it.refused or taken(it, 0) or 'issued'
end

for i = 1, #voided, 2 do void_unused(voided[i], voided[i + 1], now) end
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
