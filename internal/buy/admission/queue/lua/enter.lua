-- enter: gives users tickets of the waiting rooms of items, for a batch of requests on items of
-- one shard. Loaded behind reservation/lua/prelude.lua, captcha/lua/answer.lua,
-- path/lua/unused.lua, path/lua/buyers.lua and outlook.lua.
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
--   not_loaded, paused, ended, holding, limit, person (also by the ticket of another account),
--   expiries (see buyers.lua), captcha (detail = verdict), sold_out: no ticket, nothing used up
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

local items, numbers = {}, {} -- numbers: of the requests among those of their items
for i = 1, n_items do
  local key, reservations, queue, places, beats, room, permits, units, admissions, records, expiries = unpack(KEYS, 11 * i - 9, 11 * i + 1)
  local it = open_item(key, records, expiries, now, record_ttl)
  it.sale, it.id, it.inflow, it.path, it.captcha = unpack(ARGV, 2 + 5 * i, 6 + 5 * i)
  it.early = it.refused == 'not_started'
  if it.early then it.refused = nil end
  it.reservations, it.queue, it.places, it.beats, it.room = reservations, queue, places, beats, room
  it.permits, it.units_key, it.admissions = permits, units, admissions
  it.placed = {} -- requests
  it.tickets = {} -- the last ticket of each person key
  items[i] = it
end
for i = 1, n do
  local item, user, _, _, _, _, _, _, _, persons = request(i)
  numbers[i] = ask(items[tonumber(item)], user, persons)
end
for i = 1, n_items do
  local it = items[i]
  read_buyers(it)
  it.before = redis.call('HMGET', it.places, unpack(it.asking))
  if #it.keys > 0 then
    local tickets = redis.call('HMGET', it.places, unpack(it.keys))
    for k, key in ipairs(it.keys) do it.tickets[key] = tickets[k] end
  end
end

local function stay(ticket, session, tickets)
  if session == '' then return end
  redis.call('SADD', tickets, ticket)
  redis.call('PEXPIRE', tickets, life)
end

-- present returns whether the user's ticket from before counts; it may wait again.
local function present(it, c, user, session, tickets)
  local before, own = it.before[c], it.own[c]
  local key = prefix .. before
  local t = redis.call('HMGET', key, 'status', 'expires', 'epoch', 'score')
  local till = tonumber(t[2] or 0)
  if t[1] == 'WAITING' then
    redis.call('ZADD', it.beats, 'XX', at, before)
  elseif t[1] ~= 'ADMITTED' then
    return false
  elseif till > now and own == till then
    till = own -- admitted, with an unused path token
  elseif till > now and t[4] and it.loaded and tonumber(t[3]) < tonumber(it.epoch) and not it.held[c] then
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
local owners = {} -- of the tickets of this call

-- other_ticket returns the letter of a person key with a waiting ticket of another account.
local function other_ticket(it, user, counted)
  for key in string.gmatch(counted, '[^,]+') do
    local ticket = it.tickets[key]
    local other = ticket and owners[ticket]
    if ticket and not other then
      local t = redis.call('HMGET', prefix .. ticket, 'user', 'status')
      if t[2] == 'WAITING' then other = t[1] end
    end
    if other and other ~= user then return string.sub(key, 1, 1) end
  end
end

-- decide returns the outcome of request c on an item, and the detail; i is its number in the call.
local function decide(i, it, c, user, ticket, verdict, created)
  local outcome, detail = refuse_buyer(it, c, user, now, other_ticket)
  if outcome then return outcome, detail end
  local record = parse_record(it.records[c])
  local wrong = refuse_answer(it, user, record, verdict, created, now, captcha_life, it.early and 0 or it.opens)
  if wrong then return 'captcha', wrong end
  if not it.early and free_units(it, it.share[c], now) <= 0 then return 'sold_out' end
  if verdict ~= '' then
    if record.permits ~= '' then voided[#voided + 1], voided[#voided + 2] = record.permits, user end
    it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, used_up(created, '', '')
  end
  owners[ticket] = user
  for key in string.gmatch(it.counted[c], '[^,]+') do it.tickets[key] = ticket end
  it.placed[#it.placed + 1] = i
  return 'placed', ticket
end

local reply = { now }
for i = 1, n do
  local item, user, ticket, _, _, verdict, created, session, tickets, _, unasked = request(i)
  local it, c = items[tonumber(item)], numbers[i]
  local outcome, detail
  if unasked == '1' and it.own[c] > now then
    outcome = 'unused'
  elseif it.before[c] and present(it, c, user, session, tickets) then
    outcome, detail = 'placed', it.before[c]
  else
    outcome, detail = decide(i, it, c, user, ticket, verdict, created)
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
      places[#places + 1], places[#places + 2] = user, ticket
      for key in string.gmatch(it.counted[numbers[r]], '[^,]+') do places[#places + 1], places[#places + 2] = key, ticket end
      note_buyer(it.notes, user, it.counted[numbers[r]])
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
      if persons ~= '' then fields[#fields + 1], fields[#fields + 2] = 'persons', persons end
      redis.call('HSET', prefix .. ticket, unpack(fields))
      redis.call('PEXPIRE', prefix .. ticket, life)
      stay(ticket, session, tickets)
    end
  end
end
write_notes()
return reply
