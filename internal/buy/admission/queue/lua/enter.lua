-- enter: gives users tickets of the waiting rooms of items, for a batch of requests on items of
-- one shard. Loaded behind reservation/lua/prelude.lua, captcha/lua/answer.lua,
-- path/lua/unused.lua and outlook.lua.
--
-- KEYS  [1] rooms of the shard with buyers: "sale|item"
--       then eleven for each item: item   reservations
--         waiting room: ticket → score   tickets: user → ticket
--         beats: ticket → last heartbeat (Unix ms)
--         stats of the room: seq and the figures of admit.lua
--         permits   units per user of the sale   admissions
--         prefix of the records of captchas of the sale
--         prefix of the expiries of users in the sale
-- ARGV  [1] number of requests   [2] number of items   [3] prefix of the key of a ticket
--       [4] lifetime of tickets and rooms, ms
--       [5] life of a captcha, ms   [6] TTL of a record of captchas, ms
--       then for each item: sale, item, buyers admitted per second (0 = no limit), prefixes of
--       the keys of users that tickets name for processes of former releases: of path tokens
--       and of captchas
--       then for each request: its item (1, 2, …), user, new ticket, number in the draw
--       (1 to 2^52), nonce of that number ("" = it is random), verdict on the answer ("" =
--       none is required), creation of its challenge, session ("" = none: the ticket becomes
--       that session's), key of the tickets of the session, person keys of the user
--       ("" = none), "1" = the gate was not asked for a path token
--
-- Reply { now (Unix ms), for each request: outcome, detail, number ahead, seconds to wait,
--       chance in percent (each -1 = unknown); for each item: opens (Unix ms, 0 = unknown) }:
--   placed  detail = ticket, the new one, or the present one, of which no more is replied. An
--           admitted ticket whose path token a rebuild of the gate took away waits again, at
--           its score.
--   unused  the user has an unused path token, and the gate was not asked for another
--   not_loaded, paused, ended, holding (detail = task), limit (of the sale is used up; detail = limit), expiries (detail = wait, ms),
--   person (the reservations, the path token or the ticket of other accounts of the same
--   person use up the limit; detail = letter of the key), captcha (detail = verdict), sold_out: no ticket, nothing used up
--
-- Invariant: a user has one ticket in a room, however often enter is called. Scores of
-- entries before the opening are -draw, all below zero; later scores count up from 1. So
-- early buyers are in random order, before all later ones, who are in order of arrival;
-- after the opening no new buyer comes before an earlier one. A user has one request in a
-- call. The script decides all requests in order and writes last, except the counts of
-- unused tokens and what concerns present tickets.
local rooms, n, n_items, prefix, life = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local captcha_life, record_ttl = tonumber(ARGV[5]), tonumber(ARGV[6])
local first_request = 7 + 5 * n_items -- argument
local now = redis_time()

local function ms(n) return string.format('%.0f', n) end
local at = ms(now) -- once: number formatting is slow in Redis

local function request(i)
  local a = first_request + 11 * (i - 1)
  return unpack(ARGV, a, a + 10)
end

local items = {}
for i = 1, n_items do
  local key, reservations, queue, places, beats, room, permits, units, admissions, records, expiries = unpack(KEYS, 11 * i - 9, 11 * i + 1)
  local it = read_gate(key)
  it.sale, it.id, it.inflow, it.path, it.captcha = unpack(ARGV, 2 + 5 * i, 6 + 5 * i)
  it.refused = refusal(it, now)
  it.closed = it.refused == 'not_loaded' or it.state == 'loading'
  it.early = it.refused == 'not_started'
  if it.early then it.refused = nil end
  it.reservations, it.queue, it.places, it.beats, it.room = reservations, queue, places, beats, room
  it.permits, it.units_key, it.admissions, it.expiries = permits, units, admissions, expiries
  it.book = open_records(records, now, record_ttl)
  it.requests, it.asking, it.counts = {}, {}, {}
  it.before, it.held, it.own, it.units, it.records, it.expired = {}, {}, {}, {}, {}, {} -- by request
  it.placed, it.changed = {}, {} -- requests; user and record, …
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
  local before, held = redis.call('HMGET', it.places, unpack(it.asking)), redis.call('HMGET', it.reservations, unpack(it.asking))
  local own, units, records, expired = redis.call('ZMSCORE', it.permits, unpack(it.asking)), {}, {}, {}
  if not it.closed and not it.refused then
    records = read_records(it.book, it.asking)
    expired = redis.call('MGET', unpack(it.counts))
    if it.sale_limit > 0 then units = redis.call('HMGET', it.units_key, 'epoch', unpack(it.asking)) end
  end
  for c, r in ipairs(it.requests) do
    it.before[r], it.held[r], it.own[r], it.records[r], it.expired[r] = before[c], held[c], tonumber(own[c] or 0), records[c], expired[c]
    it.units[r] = units[1] == it.epoch and tonumber(units[c + 1] or 0) or 0
  end
end

local function stay(ticket, session, tickets)
  if session == '' then return end
  redis.call('SADD', tickets, ticket)
  redis.call('PEXPIRE', tickets, life)
end

-- present returns whether the user's ticket from before counts; it may wait again.
local function present(i, it, user, session, tickets)
  local before, own = it.before[i], it.own[i]
  local key = prefix .. before
  local t = redis.call('HMGET', key, 'status', 'expires', 'epoch', 'score')
  local till = tonumber(t[2] or 0)
  if t[1] == 'WAITING' then
    redis.call('ZADD', it.beats, 'XX', at, before)
  elseif t[1] ~= 'ADMITTED' then
    return false
  elseif till > now and own == till then
    till = own -- admitted, with an unused path token
  elseif till > now and t[4] and it.loaded and tonumber(t[3]) < tonumber(it.epoch) and not it.held[i] then
    -- A rebuild of the gate took the path token away: the buyer is first again.
    redis.call('ZADD', it.queue, t[4], before)
    redis.call('ZADD', it.beats, at, before)
    redis.call('HSET', key, 'status', 'WAITING')
    redis.call('HDEL', key, 'epoch', 'expires', 'score')
    redis.call('SADD', rooms, it.sale .. '|' .. it.id)
  else
    if till <= now and (own == till or tonumber(redis.call('ZSCORE', it.admissions, user) or '0') == -till) then
      redis.call('HSET', key, 'why', 'unused') -- admit.lua no longer finds this ticket once there is another
    end
    return false
  end
  if session ~= '' then redis.call('HSET', key, 'session', session) end
  stay(before, session, tickets)
  return true
end

local voided = {} -- permits and user, …
local noted = {}  -- places and person key → user who gets a ticket in this call

-- other_person returns the letter of a person key by which other accounts use up the limit;
-- nil = none do. Places have the last ticket of each key, too.
local function other_person(it, user, persons)
  if persons == '' then return nil end
  local left, letter = person_room(it, it.id, it.units_key, ',' .. persons)
  if left == 0 then return letter end
  if left ~= 1 then return nil end
  for key in string.gmatch(persons, '[^,]+') do
    local other = noted[it.places .. key]
    if not other then
      local t = redis.call('HMGET', prefix .. (redis.call('HGET', it.places, key) or ''), 'user', 'status')
      if t[2] == 'WAITING' then other = t[1] end
    end
    if other and other ~= user then return string.sub(key, 1, 1) end
  end
  return other_path(it.expiries, user, persons, now)
end

-- decide returns the outcome of request i on an item, and the detail.
local function decide(i, it, user, ticket, verdict, created, persons)
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
  if verdict ~= '' then
    local record = parse_record(it.records[i])
    verdict = answer(record, verdict, created, now, captcha_life, it.early and 0 or it.opens)
    if verdict == 'wrong' then it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, record_text(record) end
    if verdict ~= 'right' then return 'captcha', verdict end
    if not it.early and (it.stock <= 0 or now < it.waitlist_until) then return 'sold_out' end
    if record.permits ~= '' then voided[#voided + 1], voided[#voided + 2] = record.permits, user end
    it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, used_up(created, '', '')
  elseif not it.early and (it.stock <= 0 or now < it.waitlist_until) then
    return 'sold_out'
  end
  for key in string.gmatch(persons, '[^,]+') do noted[it.places .. key] = user end
  it.placed[#it.placed + 1] = i
  return 'placed', ticket
end

local reply = { now }
for i = 1, n do
  local item, user, ticket, _, _, verdict, created, session, tickets, persons, unasked = request(i)
  local it = items[tonumber(item)]
  local outcome, detail
  if unasked == '1' and it.own[i] > now then
    outcome = 'unused'
  elseif it.before[i] and present(i, it, user, session, tickets) then
    outcome, detail = 'placed', it.before[i]
  else
    outcome, detail = decide(i, it, user, ticket, verdict, created, persons)
  end
  local r = #reply
  reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4], reply[r + 5] = outcome, detail or '', -1, -1, -1
end
for i = 1, n_items do reply[#reply + 1] = items[i].opens or 0 end

for i = 1, #voided, 2 do void_unused(voided[i], voided[i + 1], now) end
for i = 1, n_items do
  local it = items[i]
  write_records(it.book, it.changed)
  local count = #it.placed
  if count > 0 then
    redis.call('HSETNX', it.room, 'seq', 0)
    local score = not it.early and redis.call('HINCRBY', it.room, 'seq', count) - count
    local queue, beats, places = {}, {}, {}
    for c, r in ipairs(it.placed) do
      local _, user, ticket, draw = request(r)
      queue[2 * c - 1], queue[2 * c] = it.early and '-' .. draw or score + c, ticket
      beats[2 * c - 1], beats[2 * c] = at, ticket
      places[2 * c - 1], places[2 * c] = user, ticket
    end
    redis.call('ZADD', it.queue, unpack(queue))
    redis.call('ZADD', it.beats, unpack(beats))
    redis.call('HSET', it.places, unpack(places))
    redis.call('SADD', rooms, it.sale .. '|' .. it.id)
    for _, key in ipairs({ it.queue, it.places, it.beats, it.room }) do redis.call('PEXPIRE', key, life) end
    local ahead, read = 0, nil
    if not it.early then
      ahead, read = redis.call('ZCARD', it.queue) - count, read_outlook(it.room, it.permits, tonumber(it.inflow), now)
    end
    for c, r in ipairs(it.placed) do
      local _, user, ticket, _, nonce, _, _, session, tickets, persons = request(r)
      local fields = { 'sale', it.sale, 'item', it.id, 'user', user, 'status', 'WAITING', 'path', it.path .. user, 'captcha', it.captcha .. user }
      if session ~= '' then fields[#fields + 1], fields[#fields + 2] = 'session', session end
      if it.early then
        if nonce ~= '' then fields[#fields + 1], fields[#fields + 2] = 'nonce', nonce end
      else
        local a = 1 + 5 * (r - 1)
        reply[a + 3] = ahead + c - 1
        reply[a + 4], reply[a + 5] = outlook(it, read, ahead + c - 1)
        fields[#fields + 1], fields[#fields + 2] = 'ahead', ahead + c - 1
      end
      if persons ~= '' then
        fields[#fields + 1], fields[#fields + 2] = 'persons', persons
        for key in string.gmatch(persons, '[^,]+') do redis.call('HSET', it.places, key, ticket) end
        note_persons(it.expiries, user, persons)
      end
      redis.call('HSET', prefix .. ticket, unpack(fields))
      redis.call('PEXPIRE', prefix .. ticket, life)
      stay(ticket, session, tickets)
    end
  end
end
return reply
