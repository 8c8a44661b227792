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
--                   srev, acceptances, shares (nil = none); there (it has a state and an epoch), complete (all other
--                   fields are written), stale (built before the last Redis restart
--                   or failover), loaded (complete and not stale)
-- refusal(gate, now) nil if units may be taken, else not_loaded, ended, paused or
--                   not_started
-- spare_units(gate, share, now)  units that other shares do not keep from a buyer of a share (nil = of
--                   none), and those that the share keeps for the buyer: until its time, what its buyers
--                   have not taken
-- free_units(gate, share, now)  units that the buyer may take: the same, and while buyers wait,
--                   only what the share keeps. The rest is for the waitlist
-- take_share(gate, share, n, lost)  counts units that buyers of a share take, or return, and
--                   units that do not return to the stock (nil = none), which are kept no more
-- shares_text(gate)  the field "kept" of the item: "share:until (ms):units:taken" of each share
-- code_uses(code)  units that may be bought with a code: the last eight hexadecimal digits of its key
-- share_of(persons)  the share in a list of person keys ("c…,a…,s0"), nil = none
-- add_units(key, epoch, user, n)   adds to the units of a user, or of a person, in the hash
--                   Keys.Units of a sale, if it is of that epoch
-- person_fields(gate, item, at)  the fields of that hash which count the persons of a
--                   reservation, a list: at is its time, with the keys of the persons after it
--                   ("1700000000000,c…,a…"). A field is the key and person_suffix(gate, item), the
--                   end of the item's id. The limit of the sale counts a person over
--                   all items, that of an item in the item. The field of a code is its key
-- split_persons(persons)  the person keys that count what a buyer takes, the one under
--                   which deleted accounts of the buyer's contact are counted ("f…", the last of the persons;
--                   nil = none), which a buyer's attempt reads and does not add to, the share
--                   ("s…", the last; nil = none), and the code ("k…", before it; nil = none)
-- room_fields(gate, item, user, counted, former, code, fields)  appends the fields that room_of needs
-- read_units(gate, key, fields)  a list: the units of field i (text, false = none) at i + 1; nil if the
--                   hash is of another epoch
-- room_of(gate, units, at, counted, former, code)  units that the limits leave to the account,
--                   and to the persons, with the letter of the key that leaves the fewest (nil = no key), and the
--                   uses that the code has left (nil = no code). at is where the units of the fields of
--                   the user begin in the list of read_units
-- read_room(gate, item, key, user, persons)  the same for one user

local known_life
local function life()
  if known_life then return known_life[1], known_life[2] end
  known_life = {}
  for i, name in ipairs({ 'run_id', 'master_replid' }) do
    local info = redis.pcall('INFO', i == 1 and 'server' or 'replication')
    if type(info) == 'string' then
      local _, at = string.find(info, name .. ':', 1, true) -- a pattern would be tried at every character
      known_life[i] = at and string.match(info, '^%x+', at + 1) or ''
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
  local f = redis.call('HMGET', key, 'gate', 'epoch', 'opens', 'closes', 'limit', 'total', 'stock', 'reserved', 'rev', 'line', 'srev', 'run', 'replid', 'taken', 'salelimit', 'kept')
  local function number(i) return f[i] and tonumber(f[i]) or nil end
  local g = {
    state = f[1], epoch = f[2], opens = number(3), closes = number(4), limit = number(5), total = number(6),
    stock = number(7), reserved = number(8), rev = number(9), waitlist_until = number(10) or 0, srev = number(11),
    acceptances = number(14) or 0, sale_limit = number(15) or 0,
  }
  if f[16] then
    g.shares = {}
    for share, till, units, taken in string.gmatch(f[16], '(s%d):(%d+):(%d+):(%d+)') do
      g.shares[#g.shares + 1] = { share = share, till = tonumber(till), units = tonumber(units), taken = tonumber(taken) }
    end
  end
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

local function spare_units(gate, share, now)
  if not gate.shares then return gate.stock, 0 end
  local own, others = 0, 0
  for _, s in ipairs(gate.shares) do
    local left = now < s.till and math.max(0, s.units - s.taken) or 0
    if s.share == share then own = left else others = others + left end
  end
  return gate.stock - others, own
end

local function free_units(gate, share, now)
  local spare, own = spare_units(gate, share, now)
  if now < gate.waitlist_until then return math.min(own, gate.stock) end
  return spare
end

local function take_share(gate, share, n, lost)
  if not share or not gate.shares then return end
  for _, s in ipairs(gate.shares) do
    if s.share == share then s.taken, s.units = math.max(0, s.taken + n), math.max(0, s.units - (lost or 0)) end
  end
end

local function shares_text(gate)
  local texts = {}
  for i, s in ipairs(gate.shares) do texts[i] = string.format('%s:%.0f:%d:%d', s.share, s.till, s.units, s.taken) end
  return table.concat(texts, ',')
end

local function code_uses(code) return tonumber(string.sub(code, 10), 16) end

local function share_of(persons)
  if #persons % 18 ~= 2 then return nil end -- a key and its comma have 18 characters
  return string.match(',' .. persons .. ',', ',(s%d),')
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
  for key in string.gmatch(string.sub(at, comma + 1), '[^,]+') do
    if string.byte(key) == 107 then -- "k"
      fields[#fields + 1] = key
    elseif #key > 2 then -- not the share
      fields[#fields + 1] = key .. of_item
    end
  end
  return fields
end

local function split_persons(persons)
  local share = share_of(persons)
  if share then persons = string.sub(persons, 1, -4) end
  local code -- a key has 17 characters
  if string.byte(persons, -17) == 107 then -- "k"
    code = string.sub(persons, -17)
    persons = string.sub(persons, 1, -19)
  end
  if string.byte(persons, -17) ~= 102 then return persons, nil, share, code end -- "f"
  return string.sub(persons, 1, -19), string.sub(persons, -17), share, code
end

-- The fields of a user are in the same order for both functions. Keys have 17 characters and a comma.
local function room_fields(gate, item, user, counted, former, code, fields)
  local n = #fields
  if gate.sale_limit > 0 then
    n = n + 1
    fields[n] = user
  end
  if code then
    n = n + 1
    fields[n] = code
  end
  if counted == '' and not former then return end
  local of_item = person_suffix(gate, item)
  for at = 1, #counted, 18 do
    n = n + 1
    fields[n] = string.sub(counted, at, at + 16) .. of_item
  end
  if former then fields[n + 1] = former .. of_item end
end

local function read_units(gate, key, fields)
  if #fields == 0 then return {} end
  local units = redis.call('HMGET', key, 'epoch', unpack(fields))
  return units[1] == gate.epoch and units or nil
end

local function room_of(gate, units, at, counted, former, code)
  local most, own, room, letter, uses = gate.limit, 0, nil, nil, nil
  if gate.sale_limit > 0 then
    most, own, at = gate.sale_limit, tonumber(units[at] or 0), at + 1
  end
  if code then
    uses, at = math.max(0, code_uses(code) - tonumber(units[at] or 0)), at + 1
  end
  for key = 1, #counted, 18 do
    local left = math.max(0, most - tonumber(units[at] or 0))
    if not room or left < room then room, letter = left, string.sub(counted, key, key) end
    at = at + 1
  end
  if former then own = own + tonumber(units[at] or 0) end
  return math.max(0, most - own), room, letter, uses
end

local function read_room(gate, item, key, user, persons)
  local fields, counted, former, _, code = {}, split_persons(persons)
  room_fields(gate, item, user, counted, former, code, fields)
  return room_of(gate, read_units(gate, key, fields) or {}, 2, counted, former, code)
end
