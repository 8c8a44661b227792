-- Counts the attempts of many subjects in one call, as take_window does for one key.
--
-- new_tries(key, window, now)  counters of one kind, such as the attempts of users in one sale.
--   Before the others, tries.asking gets the subjects of the call.
-- read_tries(tries)  reads them, with two commands.
-- take_try(tries, subject, most)  counts one attempt, unless as many as most were counted in
--   the window that ends now. It returns 0, or the wait until one more is allowed.
-- write_tries(tries)  records what was counted, with one command.
--
-- Times are in ms. A value is the times of a subject's newest attempts, of 13 digits each, the
-- newest last, in a hash of the whole window in which the newest was made: the window that
-- ends now is in two hashes. A hash expires two windows after its last attempt. A refused attempt
-- is not counted. A clock that was set back by a window or more has no attempts, and so has
-- another length of the window.
--
-- Invariant: no window has more than most attempts, whatever the number of processes.
local TRY = 13 -- digits

local function new_tries(key, window, now)
  local generation = math.floor(now / window)
  local name = key .. ':' .. string.format('%.0f', window) .. ':'
  return {
    key = name .. string.format('%.0f', generation), former = name .. string.format('%.0f', generation - 1),
    window = window, now = now, at = string.format('%013.0f', now), asking = {}, times = {}, changed = {},
  }
end

local function read_tries(tries)
  local former = redis.call('HMGET', tries.former, unpack(tries.asking))
  local newer = redis.call('HMGET', tries.key, unpack(tries.asking))
  for i, subject in ipairs(tries.asking) do tries.times[subject] = newer[i] or former[i] or '' end
end

local function take_try(tries, subject, most)
  local times, now, window = tries.times[subject], tries.now, tries.window
  if #times >= most * TRY then
    local oldest = tonumber(string.sub(times, -most * TRY, -(most - 1) * TRY - 1))
    if oldest + window > now then return math.min(window, oldest + window - now) end
    times = most > 1 and string.sub(times, -(most - 1) * TRY) or ''
  end
  tries.times[subject], tries.changed[subject] = times .. tries.at, true
  return 0
end

local function write_tries(tries)
  local values = {}
  for subject in pairs(tries.changed) do
    values[#values + 1], values[#values + 2] = subject, tries.times[subject]
  end
  if #values == 0 then return end
  redis.call('HSET', tries.key, unpack(values))
  redis.call('PEXPIRE', tries.key, 2 * tries.window)
end
