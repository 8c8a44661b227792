-- reserve: takes stock for a batch of attempts, all on items of one shard. Prepended:
-- prelude.lua, stream/lua/append.lua, ratelimit/lua/tries.lua, append_orders.lua.
--
-- KEYS  [1] order stream of the shard   [2] its sum
--       then seven for each item: item, reservations, permits, idempotency keys of its
--       sale, former reservations, units per user of its sale, tries of its sale
-- ARGV  [1] number of attempts   [2] TTL of idempotency keys, ms
--       [3] number of items      [4] 1 = tries are counted
--       [5] [6] names of the stream's fields for message id and payload
--       [7] traces of the attempts (package tracing), "" = none
--       then for each item: sale, id, terms (see append_orders.lua), 1 = it is the only
--       item of its sale
--       then for each attempt: its item (1, 2, …), user, task, permit of its path token
--       ("epoch|expiry", "" = none), quantity, idempotency key, person keys ("c…,a…", "" =
--       only the account is counted; with a last "f…", "k…" or "s…" see split_persons), and if tries are counted their
--       maximum in a window (0 = no limit) and the length of the window (ms)
--       last: the origins of the attempts, ORIGIN characters each, "" = none is known
-- Reply Redis time, ms; then for each item: epoch, opens (ms);
--       then for each attempt: code, remaining (12: what the buyer may take; 13: the wait in ms, with revision 0),
--       revision, after the codes 2, 3, 8 and 9 a task, and after 10 and 14 to 17 the units that the limits leave
--       to the user
-- Codes 1 accepted        2 replayed: same idempotency key and input
--       3 idempotency key used with other input
--       4 not loaded      5 paused      6 not started     7 ended
--       8 path token invalid (task: of the user's reservation, or "")
--       9 the user has a reservation (task: its task); when there is nothing to take,
--         sold out, paused or ended, whatever the path token
--       10 over the limit of the item   11 sold out   12 fewer left than requested
--       13 too many tries   14 over the limit of the sale
--       15 over the limit that the accounts of a contact share   16 of an address
--       17 over the uses of the code
--
-- The key of a reservation answers a repeated call; release.lua records it when the
-- reservation ends. In a sale of several items it is recorded at once, too, because a
-- call for another item does not read this item's reservations.
--
-- Invariant: stock + reserved = total at every moment; a unit that a share keeps is taken by its
-- buyers alone until its time; a unit is taken if and only if
-- its reservation is recorded and its order is in the message of this call. Redis does not roll
-- back: the script reads first, then decides all attempts in order, and writes last,
-- the stock before everything else. Batches use multi-key commands. An
-- attempt that is sent again after a lost reply is not counted twice. The units of a user
-- in a sale with a limit are the sum of the user's reservations of its items, and those of a
-- person key the sum of the reservations that have it; they are
-- read and written only there, with one command per batch. While their hash is of another
-- epoch, the item is not loaded.

local now = redis_time()
local at = string.format('%.0f', now) -- once: number formatting is slow in Redis
local stream, stream_sum = KEYS[1], KEYS[2]
local n, idempotency_ttl = tonumber(ARGV[1]), ARGV[2]
local n_items, counted = tonumber(ARGV[3]), ARGV[4] == '1'
local id_field, payload_field, traces = ARGV[5], ARGV[6], ARGV[7]
local origins, ORIGIN = ARGV[#ARGV], 34 -- characters
local width = counted and 9 or 7
local first_attempt = 8 + 4 * n_items -- argument
local reply = { now }

-- attempt returns the arguments of attempt i: its item (1, 2, …), user, task, permit, quantity,
-- idempotency key, person keys, and if tries are counted their maximum and the length of the window.
local function attempt(i)
  local a = first_attempt + (i - 1) * width
  return unpack(ARGV, a, a + width - 1)
end

-- Items of one sale share the accepted idempotency keys and the units per user.
local items, sales = {}, {}
for i = 1, n_items do
  local key, reservations, permits, idempotency_keys, former_reservations, sale_units, tries = unpack(KEYS, 7 * i - 4, 7 * i + 2)
  local sale, id, terms, only_item = unpack(ARGV, 4 + 4 * i, 7 + 4 * i)
  local it = read_gate(key)
  it.refused = refusal(it, now)
  if it.loaded then
    reply[2 * i], reply[2 * i + 1] = tonumber(it.epoch), it.opens
  else
    it.stock, it.rev = 0, 0
    reply[2 * i], reply[2 * i + 1] = 0, 0
  end
  it.key, it.permits_key, it.idempotency_key = key, permits, idempotency_keys
  it.reservations_key = it.state == 'loading' and former_reservations or reservations
  it.sale, it.id, it.terms, it.only_item = sale, id, terms, only_item == '1'
  it.input = '|' .. id .. '|'
  it.attempts, it.asking, it.idems = {}, {}, {}                   -- of this call
  it.users, it.reservations, it.origins, it.reservation_pairs, it.key_entries = {}, {}, {}, {}, {} -- accepted in this call
  it.tasks = {} -- of reservations made in this call: user → task
  -- texts: of units, which are not formatted then; tries: by the length of the window
  local s = sales[sale] or { used_keys = {}, asking = {}, units = {}, texts = {}, changed = {}, tries = {} }
  it.used_keys, it.of_sale = s.used_keys, s
  s.key, s.tries_key = sale_units, tries
  it.person_limit = it.sale_limit > 0 and it.sale_limit or it.limit
  it.of_item = person_suffix(it, id)
  sales[sale] = s
  items[i] = it
end

-- The users and persons of the attempts.
local KINDS = { c = 15, a = 16 }
local first_person, second_person, deleted = {}, {}, {} -- by attempt: fields of the units of its person keys
local shares, codes, kept_persons = {}, {}, {} -- by attempt: its share and code, and what its reservation has of the person keys
for i = 1, n do
  local item, user, _, _, _, key, persons, most_tries, window = attempt(i)
  local it = items[tonumber(item)]
  local c = #it.attempts + 1
  it.attempts[c], it.asking[c], it.idems[c] = i, user, user .. ':' .. key
  if it.sale_limit > 0 then
    local asking = it.of_sale.asking
    asking[#asking + 1] = user
  end
  if counted and most_tries ~= '0' then
    local s = it.of_sale
    local tries = s.tries[window] or new_tries(s.tries_key, tonumber(window), now)
    s.tries[window] = tries
    tries.asking[#tries.asking + 1] = user
  end
  if persons ~= '' then
    local asking, last = it.of_sale.asking, nil
    persons, last, shares[i], codes[i] = split_persons(persons)
    if last then
      deleted[i] = last .. it.of_item
      asking[#asking + 1] = deleted[i]
    end
    if #persons == 17 then -- the length of a key
      first_person[i] = persons .. it.of_item
      asking[#asking + 1] = first_person[i]
    elseif persons ~= '' then
      first_person[i], second_person[i] = string.sub(persons, 1, 17) .. it.of_item, string.sub(persons, 19) .. it.of_item
      asking[#asking + 1], asking[#asking + 2] = first_person[i], second_person[i]
    end
    if codes[i] then
      asking[#asking + 1] = codes[i]
      persons = persons == '' and codes[i] or persons .. ',' .. codes[i]
    end
    if shares[i] then persons = persons == '' and shares[i] or persons .. ',' .. shares[i] end
    if persons ~= '' then kept_persons[i] = persons end
  end
end
for _, s in pairs(sales) do
  if #s.asking > 0 then
    local f = redis.call('HMGET', s.key, 'epoch', unpack(s.asking))
    s.epoch = f[1]
    for u, user in ipairs(s.asking) do s.units[user] = tonumber(f[u + 1] or 0) end
  end
  for _, tries in pairs(s.tries) do read_tries(tries) end
end
local held, before, idems, permits = {}, {}, {}, {}
for i = 1, n_items do
  local it = items[i]
  if #it.attempts > 0 then
    if #it.of_sale.asking > 0 and it.of_sale.epoch ~= it.epoch then it.refused = it.refused or 'not_loaded' end
    local reservations = redis.call('HMGET', it.reservations_key, unpack(it.asking))
    local known = redis.call('HMGET', it.idempotency_key, unpack(it.idems))
    local expiries = redis.call('ZMSCORE', it.permits_key, unpack(it.asking))
    for c, index in ipairs(it.attempts) do
      held[index], before[index], idems[index], permits[index] = reservations[c], known[c], it.idems[c], expiries[c]
    end
  end
end

local CODES = { not_loaded = 4, paused = 5, not_started = 6, ended = 7 }

-- decide returns the code of attempt i on an item, and what the reply adds for that code.
local function decide(i, it, user, task, permit, units, key, most_tries, window)
  local quantity = tonumber(units)
  local past = it.used_keys[idems[i]] or before[i]
  if not past and held[i] then
    local t, q, k = string.match(held[i], '^([^|]*)|(%d+)|[^|]*|(.+)$')
    if k == key then past = t .. it.input .. q end
  end
  local known = past and string.match(past, '^[^|]*')
  if counted and most_tries ~= '0' and known ~= task then
    local wait = take_try(it.of_sale.tries[window], user, tonumber(most_tries))
    if wait > 0 then return 13, wait end
  end
  if past then
    return string.sub(past, #known + 1) == it.input .. quantity and 2 or 3, known
  end
  if it.refused == 'not_loaded' then return 4 end -- its reservations may be old
  local existing = it.tasks[user] or held[i] and string.match(held[i], '^[^|]*') or ''
  local free = it.refused and 0 or free_units(it, shares[i], now)
  local none = free <= 0
  if none and existing ~= '' then return 9, existing end
  if it.refused then return CODES[it.refused] end
  local valid = permits[i] and math.abs(tonumber(permits[i])) > now and it.epoch .. '|' .. permits[i]
  if it.tasks[user] or permit ~= valid then
    -- A new path token would not help: answer sold out, as the StockCache does.
    if none then return 11 end
    return 8, existing
  end
  if existing ~= '' then return 9, existing end
  local s = it.of_sale
  local room = it.sale_limit > 0 and it.sale_limit - s.units[user] or it.limit
  if deleted[i] then room = room - s.units[deleted[i]] end
  if quantity > it.limit then return 10, math.max(0, math.min(it.limit, room)) end
  if quantity > room then return it.sale_limit > 0 and 14 or 10, math.max(0, room) end
  local first, second = first_person[i], second_person[i]
  if first then
    local left = it.person_limit - s.units[first]
    if quantity > left then return KINDS[string.sub(first, 1, 1)], math.max(0, left) end
    left = second and it.person_limit - s.units[second]
    if second and quantity > left then return KINDS[string.sub(second, 1, 1)], math.max(0, left) end
  end
  local code = codes[i]
  if code then
    local left = code_uses(code) - s.units[code]
    if quantity > left then return 17, math.max(0, left) end
  end
  if none then return 11 end
  if free < quantity then return 12, free end
  it.stock, it.reserved, it.rev = it.stock - quantity, it.reserved + quantity, it.rev + 1
  take_share(it, shares[i], quantity)
  past = task .. it.input .. quantity
  it.used_keys[idems[i]], it.tasks[user] = past, task -- the permit is used in this call
  if it.sale_limit > 0 then
    s.units[user] = s.units[user] + quantity
    s.changed[#s.changed + 1] = user
  end
  if first then
    local changed = s.changed
    s.texts[first] = s.units[first] == 0 and units or nil
    s.units[first] = s.units[first] + quantity
    changed[#changed + 1] = first
    if second then
      s.texts[second] = s.units[second] == 0 and units or nil
      s.units[second] = s.units[second] + quantity
      changed[#changed + 1] = second
    end
  end
  if code then
    s.texts[code] = nil
    s.units[code] = s.units[code] + quantity
    s.changed[#s.changed + 1] = code
  end
  local u = #it.users + 1
  local record = kept_persons[i] and task .. '|' .. units .. '|' .. at .. ',' .. kept_persons[i] .. '|' .. key
    or task .. '|' .. units .. '|' .. at .. '|' .. key
  it.users[u], it.reservations[u] = user, record
  if origins ~= '' then
    it.origins[u] = string.sub(origins, (i - 1) * ORIGIN + 1, i * ORIGIN)
  end
  it.reservation_pairs[2 * u - 1], it.reservation_pairs[2 * u] = user, record
  if not it.only_item then
    it.key_entries[2 * u - 1], it.key_entries[2 * u] = idems[i], past
  end
  return 1
end

for i = 1, n do
  local item, user, task, permit, units, key, _, most_tries, window = attempt(i)
  local it = items[tonumber(item)]
  local code, more = decide(i, it, user, task, permit, units, key, most_tries, window)
  local r = #reply
  reply[r + 1], reply[r + 2], reply[r + 3] = code, it.stock, it.rev
  if code == 12 then
    reply[r + 2] = more
  elseif code == 13 then
    reply[r + 2], reply[r + 3] = more, 0
  elseif more then
    reply[r + 4] = more
  end
end

for i = 1, n_items do
  local it = items[i]
  if #it.users > 0 then
    redis.call('HSET', it.key, 'stock', it.stock, 'reserved', it.reserved, 'rev', it.rev, 'taken', it.acceptances + #it.users)
    if it.shares then redis.call('HSET', it.key, 'kept', shares_text(it)) end
    redis.call('HSET', it.reservations_key, unpack(it.reservation_pairs))
    if not it.only_item then
      redis.call('HSET', it.idempotency_key, unpack(it.key_entries))
      redis.call('PEXPIRE', it.idempotency_key, idempotency_ttl)
    end
    redis.call('ZREM', it.permits_key, unpack(it.users))
  end
end
for _, s in pairs(sales) do
  if #s.changed > 0 then
    local units = {}
    for _, user in ipairs(s.changed) do
      units[#units + 1], units[#units + 2] = user, s.texts[user] or s.units[user]
    end
    redis.call('HSET', s.key, unpack(units))
  end
  for _, tries in pairs(s.tries) do write_tries(tries) end
end
append_orders(stream, stream_sum, { id_field, payload_field, traces }, items)
return reply
