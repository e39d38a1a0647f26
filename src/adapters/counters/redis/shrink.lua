-- Reduces allocations whose fence matches to an amount, then serves the waiting lines of their pools. The cost grows
-- with those allocations and the waiters that are served. A repeated call, or one after a smaller amount, changes
-- nothing.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each allocation: token, fence, amount to keep
-- Reply  for each allocation 'shrunk', 'asItIs' (its amount is not larger) or 'notHeld'
--        'closed'   the domain is not loaded, or has another epoch or server, or its keys contradict each other; a
--                   contradiction closes the domain until the next load
-- Errors none of its own; a server whose memory is full still shrinks

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()

local reply, shrunk = {}, {}
for at = 3, #ARGV, 3 do
  local token, left = ARGV[at], ARGV[at + 2]
  local held = heldOf(token)
  if not held or held.fence ~= ARGV[at + 1] then
    reply[#reply + 1] = 'notHeld'
  elseif tonumber(held.amount) <= tonumber(left) then
    reply[#reply + 1] = 'asItIs'
  else
    if not count(held, tonumber(left) - tonumber(held.amount)) then return closeDomain() end
    held.amount = left
    writeHeld(token, held)
    shrunk[#shrunk + 1] = held
    reply[#reply + 1] = 'shrunk'
  end
end
serve(poolsOf(shrunk))
writeCounts()
return reply
