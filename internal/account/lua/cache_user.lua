-- Keeps a copy of a person's record.
--
-- KEYS[1]  hash version, user; lapses
-- ARGV[1]  version
-- ARGV[2]  record, JSON
-- ARGV[3]  life, milliseconds
--
-- Replies 1, or 0 when a newer version is there.
--
-- Keeps true: whoever read the record before a change and writes its copy after
-- it does not bring the old state back.
local have = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if have > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'user', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
