-- Records that renewals reach an api process.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id
-- Reply  'reported'
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()
redis.call('HSET', META, 'silent', '0')
return 'reported'
