-- Leaves the lines that a waiter stands in, and serves those.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, waiter
-- Reply  'left' | 'notThere'
--        'closed'   not loaded, another epoch or server
-- Errors none of its own; a server whose memory is full still lets go

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
return leaveLine(ARGV[3]) and 'left' or 'notThere'
