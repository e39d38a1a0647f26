-- Removes a waiter from its waiting lines and serves them.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, waiter
-- Reply  'left' | 'notThere'
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own; a server whose memory is full still removes the waiter

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
local left = leaveLine(ARGV[3])
writeCounts()
return left and 'left' or 'notThere'
