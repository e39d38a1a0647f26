-- Reads all waiting lines. The cost grows with the number of waiters.
--
-- KEYS   as in common.lua
-- ARGV   run id
-- Reply  {pool, waiter, its value as in common.lua, ...} pool by pool, each in the order of its waiting line; {} if the
--        domain is closed
-- Errors none of its own

if not isOpen(nil, ARGV[1]) then return {} end
local reply = {}
for _, pool in ipairs(waitedFor()) do
  visitLine(pool, function(entry)
    reply[#reply + 1] = pool
    reply[#reply + 1] = entry.id
    reply[#reply + 1] = entry.text
    return false
  end)
end
return reply
