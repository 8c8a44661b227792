-- Caches a copy of a user.
--
-- KEYS[1]  hash version, user; expires
-- ARGV[1]  version
-- ARGV[2]  user, JSON
-- ARGV[3]  time to live, milliseconds
--
-- Replies 1, or 0 if a newer version is cached.
--
-- Invariant: a process that read the user before a change and writes its copy after the
-- change does not restore the old state.
local have = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if have > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'user', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
