-- Caches a copy of a user.
--
-- KEYS[1]  hash version, user; expires
-- ARGV[1]  version
-- ARGV[2]  user, sealed
-- ARGV[3]  time to live, milliseconds
--
-- Replies 1, or 0 if a newer version is cached.
--
-- Invariant: a process that read the user before a change and writes its copy after the
-- change does not restore the old state.

local copy = KEYS[1]
local version, user, ttl = unpack(ARGV)

local have = tonumber(redis.call('HGET', copy, 'version') or '0')
if have > tonumber(version) then return 0 end
redis.call('HSET', copy, 'version', version, 'user', user)
redis.call('PEXPIRE', copy, ttl)
return 1
