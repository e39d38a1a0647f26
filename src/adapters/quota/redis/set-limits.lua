-- Replaces all limits.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each limit: queue scope, limit
-- Reply  'set'
--        'closed'   not loaded, another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
local load = redis.call('HGET', META, 'load')
-- The deletion first: a server whose memory is full takes it, and then the rest of the script.
redis.call('UNLINK', LIMITS)
redis.call('HSET', LIMITS, 'load', load)
for at = 3, #ARGV, 2 do redis.call('HSET', LIMITS, ARGV[at], ARGV[at + 1]) end
return 'set'
