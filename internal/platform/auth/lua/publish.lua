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

local stream = KEYS[1]
local kind, ids, keep_text = ARGV[1], ARGV[2], ARGV[3]

local keep = tonumber(keep_text)
local id = redis.call('XADD', stream, '*', 'kind', kind, 'ids', ids)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('XTRIM', stream, 'MINID', string.format('%.0f', now - keep))
redis.call('PEXPIRE', stream, keep)
return id
