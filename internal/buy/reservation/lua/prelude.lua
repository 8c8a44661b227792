-- prelude: reads a gate and decides whether it may be used. It is prepended to every
-- script that uses a gate, so that all scripts decide alike.
--
-- life()            run id of the server and id of its replication history. A restart,
--                   a failover and a resynchronisation change one of them. '' on the
--                   embedded server, which has none; nil if the ACL of the user
--                   refuses INFO: every gate is then stale.
-- redis_time()      Redis TIME, Unix ms
-- read_gate(key)    the gate of an item: state, epoch (a string), opens, closes (ms),
--                   limit (units per user), sale_limit (units per user over all items of
--                   the sale, 0 = none), total, stock, reserved, rev, waitlist_until (ms, 0 = never),
--                   srev, acceptances; there (it has a state and an epoch), complete (all other
--                   fields are written), stale (built before the last Redis restart
--                   or failover), loaded (complete and not stale)
-- refusal(gate, now) nil if units may be taken, else not_loaded, ended, paused or
--                   not_started
-- units_in_sale(key, epoch, user)  units of a user in the hash Keys.Units of a sale; nil
--                   if the hash is of another epoch
-- add_units(key, epoch, user, n)   adds to these units, in a hash of that epoch only
-- count_expiry(prefix, user, persons)  counts a reservation that expired unpaid, or a path
--                   token that expired unused, against the user and the user's person keys
--                   ("c…,a…", nil or '' = none); prefix is Keys.ExpiriesPrefix of the sale
-- expiry_wait(prefix, user, persons)  how long they have to wait after expiries, ms: from
--                   FREE_EXPIRIES on FIRST_WAIT, twice as long after each further one
-- note_persons(prefix, user, persons), persons_of(prefix, user)  remember the person keys of
--                   a user with a path token or a ticket, for count_expiry
-- person_fields(gate, item, at)  the fields of that hash which count the persons of a
--                   reservation, a list: at is its time, with the keys of the persons after it
--                   ("1700000000000,c…,a…"). A field is the key and person_suffix(gate, item), the
--                   end of the item's id. The limit of the sale counts a person over
--                   all items, that of an item in the item
-- person_room(gate, item, key, at)  units that the limits leave to these persons, and the
--                   letter of the key that leaves the fewest; nil if there is no key, or the
--                   hash is of another epoch

local known_life
local function life()
  if known_life then return known_life[1], known_life[2] end
  known_life = {}
  for i, name in ipairs({ 'run_id', 'master_replid' }) do
    local info = redis.pcall('INFO', i == 1 and 'server' or 'replication')
    if type(info) == 'string' then
      known_life[i] = string.match(info, name .. ':(%x+)') or ''
    elseif string.find(info.err or '', 'is not supported', 1, true) then
      known_life[i] = ''
    end
  end
  return known_life[1], known_life[2]
end

local function redis_time()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function read_gate(key)
  local f = redis.call('HMGET', key, 'gate', 'epoch', 'opens', 'closes', 'limit', 'total', 'stock', 'reserved', 'rev', 'line', 'srev', 'run', 'replid', 'taken', 'salelimit')
  local function number(i) return f[i] and tonumber(f[i]) or nil end
  local g = {
    state = f[1], epoch = f[2], opens = number(3), closes = number(4), limit = number(5), total = number(6),
    stock = number(7), reserved = number(8), rev = number(9), waitlist_until = number(10) or 0, srev = number(11),
    acceptances = number(14) or 0, sale_limit = number(15) or 0,
  }
  g.there = f[1] and f[2] and true or false
  g.complete = (g.there and g.opens and g.closes and g.limit and g.total and g.stock and g.reserved and g.rev) and true or false
  local run, replid = life()
  g.stale = not run or not replid or (f[12] or '') ~= run or (f[13] or replid) ~= replid
  g.loaded = g.complete and not g.stale
  return g
end

local function refusal(gate, now)
  if not gate.loaded then return 'not_loaded' end
  if gate.state == 'ended' or now >= gate.closes then return 'ended' end
  if gate.state ~= 'open' then return 'paused' end
  if now < gate.opens then return 'not_started' end
  return nil
end

local function units_in_sale(key, epoch, user)
  local f = redis.call('HMGET', key, 'epoch', user)
  if f[1] ~= epoch then return nil end
  return tonumber(f[2] or 0)
end

local function add_units(key, epoch, user, n)
  if redis.call('HGET', key, 'epoch') == epoch and redis.call('HINCRBY', key, user, n) <= 0 then
    redis.call('HDEL', key, user)
  end
end

local function person_suffix(gate, item) return gate.sale_limit > 0 and '' or string.sub(item, -8) end

local function person_fields(gate, item, at)
  local comma = string.find(at, ',', 1, true)
  if not comma then return {} end
  local of_item = person_suffix(gate, item)
  local fields = {}
  for key in string.gmatch(string.sub(at, comma + 1), '[^,]+') do fields[#fields + 1] = key .. of_item end
  return fields
end

local function person_room(gate, item, key, at)
  local fields = person_fields(gate, item, at)
  if #fields == 0 then return nil end
  local f = redis.call('HMGET', key, 'epoch', unpack(fields))
  if f[1] ~= gate.epoch then return nil end
  local most, room, letter = gate.sale_limit > 0 and gate.sale_limit or gate.limit, nil, nil
  for i, field in ipairs(fields) do
    local left = math.max(0, most - tonumber(f[i + 1] or 0))
    if not room or left < room then room, letter = left, string.sub(field, 1, 1) end
  end
  return room, letter
end

local function subjects(user, persons)
  local list = { user }
  for key in string.gmatch(persons or '', '[^,]+') do list[#list + 1] = key end
  return list
end

local function count_expiry(prefix, user, persons)
  for _, subject in ipairs(subjects(user, persons)) do
    redis.call('INCR', prefix .. subject)
    redis.call('PEXPIRE', prefix .. subject, EXPIRIES_KEPT)
  end
end

local function expiry_wait(prefix, user, persons)
  local longest = 0
  for _, subject in ipairs(subjects(user, persons)) do
    local n = tonumber(redis.call('GET', prefix .. subject) or '0')
    if n >= FREE_EXPIRIES then
      local wait = math.min(LONGEST_WAIT, FIRST_WAIT * 2 ^ math.min(n - FREE_EXPIRIES, 30))
      longest = math.max(longest, wait - EXPIRIES_KEPT + redis.call('PTTL', prefix .. subject))
    end
  end
  return longest
end

local function note_persons(prefix, user, persons)
  if persons == '' then return end
  redis.call('HSET', prefix .. 'persons', user, persons)
  redis.call('PEXPIRE', prefix .. 'persons', 2 * EXPIRIES_KEPT)
end

local function persons_of(prefix, user) return redis.call('HGET', prefix .. 'persons', user) or '' end
