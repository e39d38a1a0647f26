-- Notes that renewals can reach us.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id
-- Reply  'reported'
--        'closed'   not loaded, another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()
redis.call('HSET', META, 'silent', '0')
return 'reported'
