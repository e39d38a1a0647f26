-- Frees allocations whose fence matches, then serves the waiting lines of their pools. The cost grows with those
-- allocations and the waiters that are served.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each allocation: token, fence
-- Reply  for each allocation 'freed' or 'notHeld'
--        'closed'   the domain is not loaded, or has another epoch or server, or its keys contradict each other; a
--                   contradiction closes the domain until the next load
-- Errors none of its own; a server whose memory is full still frees

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end

local reply, freed = {}, {}
for at = 3, #ARGV, 2 do
  local token = ARGV[at]
  local held = heldOf(token)
  if held and held.fence == ARGV[at + 1] then
    if not freeHeld(token, held) then return closeDomain() end
    freed[#freed + 1] = held
    reply[#reply + 1] = 'freed'
  else
    reply[#reply + 1] = 'notHeld'
  end
end
serve(poolsOf(freed))
writeCounts()
return reply
