-- buyers: what issue.lua and enter.lua ask of a buyer of an item before they give anything, and
-- what they and admit.lua note of person keys; prepended to them, behind
-- reservation/lua/prelude.lua, reservation/lua/other_path.lua, captcha/lua/answer.lua and unused.lua.
--
-- open_item(key, records, expiries, now, ttl)  an item of a call: its gate (read_gate), refused
--   and closed, and what ask and read_buyers add. The script adds id, reservations, permits,
--   admissions and units_key (keys); records and expiries are prefixes, ttl that of a record of
--   captchas, ms
-- ask(it, i, user, persons)  adds request i to those of its item
-- read_buyers(it)  reads what the requests need, with one command of each kind:
--   held[i]  the user's reservation        own[i]  expiry of the user's path token, 0 = none
--   records[i]  the user's record of captchas
-- refuse_buyer(it, i, user, now, elsewhere)  outcome and detail for a buyer who gets nothing; nil =
--   no reason. elsewhere(it, user, counted) may name the key of another account that has a ticket:
--     not_loaded, paused, not_started, ended
--     holding   detail = task of the user's reservation
--     limit     the user's units use up a limit; detail = that of the sale, 0 = it is the item's
--     person    the units, or an unused token, of other accounts of the same person use up
--               the limit, or units the code; detail = letter of the key
--     expiries  too many expiries; detail = wait, ms
-- refuse_answer(it, user, record, verdict, created, now, life, opens)  the verdict of answer.lua; nil
--   for a right answer, and where none is required
-- notes_of(prefix)  the notes of a sale: the last unused token of each person key, so
--   that the accounts of a person share what the limits leave, and the keys of each user, for
--   count_expiry. Both are in the hash "persons"
-- note_buyer(notes, user, counted), note_path(notes, user, counted, permits)  write a note
-- write_notes()  stores them: the last step of a script
--
-- Invariant: each request is decided by what Redis has and by the notes of those before it.
local notes_by_prefix = {}

local function notes_of(prefix)
  local notes = notes_by_prefix[prefix] or { paths = {}, changed = {} } -- paths: by key, "user|permits", or the user in this call
  notes_by_prefix[prefix] = notes
  return notes
end

local function note_buyer(notes, user, counted)
  if counted == '' then return end
  local changed = notes.changed
  changed[#changed + 1], changed[#changed + 2] = user, counted
end

local function note_path(notes, user, counted, permits)
  local changed = notes.changed
  for key in string.gmatch(counted, '[^,]+') do
    notes.paths[key] = user
    changed[#changed + 1], changed[#changed + 2] = key, user .. '|' .. permits
  end
  note_buyer(notes, user, counted)
end

local function write_notes()
  for prefix, notes in pairs(notes_by_prefix) do
    if #notes.changed > 0 then
      redis.call('HSET', prefix .. 'persons', unpack(notes.changed))
      redis.call('PEXPIRE', prefix .. 'persons', 2 * EXPIRIES_KEPT)
    end
  end
end

local function open_item(key, records, expiries, now, ttl)
  local it = read_gate(key)
  it.refused = refusal(it, now)
  it.closed = it.refused == 'not_loaded' or it.state == 'loading'
  it.book, it.expiries, it.notes = open_records(records, now, ttl), expiries, notes_of(expiries)
  it.requests, it.asking, it.keys, it.fields, it.counts = {}, {}, {}, {}, {}
  it.counted, it.former, it.share, it.code, it.subjects, it.held, it.own, it.records = {}, {}, {}, {}, {}, {}, {}, {} -- by request
  it.changed = {} -- user and record, …
  return it
end

local function ask(it, i, user, persons)
  local c = #it.requests + 1
  it.requests[c], it.asking[c] = i, user
  local counted, former, share, code = split_persons(persons)
  it.counted[i], it.former[i], it.share[i], it.code[i] = counted, former, share, code
  it.subjects[i] = expiry_keys(it.expiries, user, persons)
  for _, key in ipairs(it.subjects[i]) do it.counts[#it.counts + 1] = key end
  for key in string.gmatch(counted, '[^,]+') do it.keys[#it.keys + 1] = key end
  room_fields(it, it.id, user, counted, former, code, it.fields)
end

local function read_buyers(it)
  local held, own, records = redis.call('HMGET', it.reservations, unpack(it.asking)), redis.call('ZMSCORE', it.permits, unpack(it.asking)), {}
  if not it.closed and not it.refused then
    records = read_records(it.book, it.asking)
    read_expiries(it.counts)
    it.units = read_units(it, it.units_key, it.fields) or {}
    if #it.keys > 0 then
      local paths = redis.call('HMGET', it.expiries .. 'persons', unpack(it.keys))
      for i, key in ipairs(it.keys) do it.notes.paths[key] = paths[i] end
    end
  end
  for c, r in ipairs(it.requests) do
    it.held[r], it.own[r], it.records[r] = held[c], tonumber(own[c] or 0), records[c]
  end
end

local function refuse_buyer(it, i, user, now, elsewhere)
  if it.closed then return it.refused end
  if it.held[i] then return 'holding', string.match(it.held[i], '^[^|]*') end
  if it.refused then return it.refused end
  local counted = it.counted[i]
  local room, shared, letter, uses = room_of(it, it.id, it.units, user, counted, it.former[i], it.code[i])
  if room == 0 then return 'limit', string.format('%.0f', it.sale_limit) end
  if shared == 1 then
    letter = elsewhere and elsewhere(it, user, counted) or other_path(it.notes.paths, user, counted, now)
    shared = letter and 0
  end
  if shared == 0 then return 'person', letter end
  if uses == 0 then return 'person', 'k' end
  local own = it.own[i]
  if it.stock > 0 and own > 0 and own <= now then
    expire_unused(it.permits, it.admissions, now, it.expiries, { user })
  end
  local wait = expiry_wait(it.subjects[i])
  if wait > 0 then return 'expiries', string.format('%.0f', wait) end
end

local function refuse_answer(it, user, record, verdict, created, now, life, opens)
  if verdict == '' then return nil end
  verdict = answer(record, verdict, created, now, life, opens)
  if verdict == 'wrong' then it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, record_text(record) end
  if verdict ~= 'right' then return verdict end
end
