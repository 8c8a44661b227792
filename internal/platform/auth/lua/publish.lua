-- Publishes that sessions were ended or that a user was changed.
--
-- KEYS[1]  revocation stream
-- ARGV[1]  kind: "sessions" or "user"
-- ARGV[2]  ids, comma separated
-- ARGV[3]  retention of an entry, milliseconds
--
-- Replies the id of the entry.
--
-- Invariant: the stream holds all entries of the last ARGV[3] milliseconds, so that a
-- process that starts, or was disconnected, reads what it missed. Older entries are
-- trimmed; the stream expires without new entries. Trimming uses Redis TIME, which also
-- numbers the entries: a process with a wrong clock cannot trim too much.
local keep = tonumber(ARGV[3])
local id = redis.call('XADD', KEYS[1], '*', 'kind', ARGV[1], 'ids', ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', now - keep))
redis.call('PEXPIRE', KEYS[1], keep)
return id
