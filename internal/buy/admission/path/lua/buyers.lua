-- buyers: what issue.lua and enter.lua ask of a buyer of an item before they give anything, and
-- what they and admit.lua note of person keys; prepended to them, behind
-- prelude.lua, expiries.lua and other_path.lua of reservation/lua, captcha/lua/answer.lua and unused.lua.
--
-- open_item(key, records, expiries, now, ttl)  an item of a call: its gate (read_gate), refused
--   and closed, and what ask and read_buyers add. The script adds id, reservations, permits,
--   admissions and units_key (keys); records and expiries are prefixes, ttl that of a record of
--   captchas, ms
-- ask(it, user, persons)  adds a request to those of its item, and returns its number c among them
-- read_buyers(it)  reads what the requests need, with one command of each kind:
--   held[c]  the user's reservation        own[c]  expiry of the user's path token, 0 = none
--   records[c]  the user's record of captchas
-- refuse_buyer(it, c, user, now, elsewhere)  outcome and detail for a buyer who gets nothing; nil =
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
  if counted == '' then return end
  local changed, path = notes.changed, user .. '|' .. permits
  local n = #changed
  for at = 1, #counted, 18 do -- a key has 17 characters
    local key = string.sub(counted, at, at + 16)
    notes.paths[key] = user
    changed[n + 1], changed[n + 2] = key, path
    n = n + 2
  end
  changed[n + 1], changed[n + 2] = user, counted
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
  it.n, it.asking, it.keys, it.fields, it.subjects = 0, {}, {}, {}, {}
  it.counted, it.former, it.share, it.code, it.first_field, it.first_subject = {}, {}, {}, {}, {}, {} -- by number of the request
  it.changed = {} -- user and record, …
  return it
end

local function ask(it, user, persons)
  local c = it.n + 1
  it.n, it.asking[c], it.counted[c] = c, user, ''
  it.first_field[c], it.first_subject[c] = #it.fields + 1, #it.subjects + 1
  expiry_keys(it.expiries, user, persons, it.subjects)
  if persons == '' then
    room_fields(it, it.id, user, '', nil, nil, it.fields)
    return c
  end
  local counted, former, share, code = split_persons(persons)
  it.counted[c] = counted
  if former then it.former[c] = former end
  if share then it.share[c] = share end
  if code then it.code[c] = code end
  for at = 1, #counted, 18 do it.keys[#it.keys + 1] = string.sub(counted, at, at + 16) end
  room_fields(it, it.id, user, counted, former, code, it.fields)
  return c
end

local function read_buyers(it)
  it.own, it.records = {}, {}
  it.held = redis.call('HMGET', it.reservations, unpack(it.asking))
  local own = redis.call('ZMSCORE', it.permits, unpack(it.asking))
  for c = 1, it.n do it.own[c] = own[c] and tonumber(own[c]) or 0 end
  if it.closed or it.refused then return end
  it.records = read_records(it.book, it.asking)
  read_expiries(it.subjects)
  it.units = read_units(it, it.units_key, it.fields) or {}
  if #it.keys > 0 then
    local paths = redis.call('HMGET', it.expiries .. 'persons', unpack(it.keys))
    for i = 1, #it.keys do
      if paths[i] then it.notes.paths[it.keys[i]] = paths[i] end
    end
  end
end

local function refuse_buyer(it, c, user, now, elsewhere)
  if it.closed then return it.refused end
  if it.held[c] then return 'holding', string.match(it.held[c], '^[^|]*') end
  if it.refused then return it.refused end
  local counted = it.counted[c]
  local room, shared, letter, uses = room_of(it, it.units, it.first_field[c] + 1, counted, it.former[c], it.code[c])
  if room == 0 then return 'limit', string.format('%.0f', it.sale_limit) end
  if shared == 1 then
    letter = elsewhere and elsewhere(it, user, counted) or other_path(it.notes.paths, user, counted, now)
    shared = letter and 0
  end
  if shared == 0 then return 'person', letter end
  if uses == 0 then return 'person', 'k' end
  local own = it.own[c]
  if own > 0 and own <= now and it.stock > 0 then
    expire_unused(it.permits, it.admissions, now, it.expiries, { user })
  end
  local wait = expiry_wait(it.subjects, it.first_subject[c], (it.first_subject[c + 1] or #it.subjects + 1) - 1)
  if wait > 0 then return 'expiries', string.format('%.0f', wait) end
end

local function refuse_answer(it, user, record, verdict, created, now, life, opens)
  if verdict == '' then return nil end
  local counted
  verdict, counted = answer(record, verdict, created, now, life, opens)
  if counted then it.changed[#it.changed + 1], it.changed[#it.changed + 2] = user, counted end
  if verdict ~= 'right' then return verdict end
end
