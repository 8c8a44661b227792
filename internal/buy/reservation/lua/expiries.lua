-- expiries: what earlier reservations and path tokens that expired cost a user. Prepended to the
-- scripts that count them or wait for them.
--
-- expiry_keys(prefix, user, persons, keys)  appends the keys of the expiries of a user and of the
--                   user's persons ("c…,a…", '' = none) to a list, and returns it; prefix is
--                   Keys.ExpiriesPrefix of the sale
-- read_expiries(keys)  reads many of them with one command, for expiry_wait
-- count_expiry(prefix, user, persons)  counts a reservation that expired unpaid, or a path
--                   token that expired unused, against the user and the persons
-- expiry_wait(keys, first, last)  how long those of them have to wait after expiries, ms: from
--                   FREE_EXPIRIES on FIRST_WAIT, twice as long after each further one

local function expiry_keys(prefix, user, persons, keys)
  local n = #keys + 1
  keys[n] = prefix .. user
  for at = 1, #persons, 18 do
    local key = string.sub(persons, at, at + 16)
    if #key > 2 and string.byte(key) ~= 107 then -- not the share, nor a code
      n = n + 1
      keys[n] = prefix .. key
    end
  end
  return keys
end

local expiries_read = {} -- by key, nil = none

local function read_expiries(keys)
  local counts = redis.call('MGET', unpack(keys))
  for i = 1, #keys do
    if counts[i] then expiries_read[keys[i]] = tonumber(counts[i]) end
  end
end

local function count_expiry(prefix, user, persons)
  for _, key in ipairs(expiry_keys(prefix, user, persons or '', {})) do
    expiries_read[key] = redis.call('INCR', key)
    redis.call('PEXPIRE', key, EXPIRIES_KEPT)
  end
end

local function expiry_wait(keys, first, last)
  local longest = 0
  for i = first, last do
    local n = expiries_read[keys[i]]
    if n and n >= FREE_EXPIRIES then
      local wait = math.min(LONGEST_WAIT, FIRST_WAIT * 2 ^ math.min(n - FREE_EXPIRIES, 30))
      longest = math.max(longest, wait - EXPIRIES_KEPT + redis.call('PTTL', keys[i]))
    end
  end
  return longest
end
