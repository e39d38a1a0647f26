-- Gives back what lines that are held with exactly their fences have beyond what is left of them, then serves the lines of their pools. The cost
-- follows those lines, and whom it serves. Told twice, or after one that leaves less, it changes nothing.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each line: token, fence, what is left
-- Reply  for each line 'shrunk', 'asItIs' (it has no more than that) or 'notHeld'
--        'closed'   not loaded, another epoch or server; also where the keys contradict each other, and then nobody is granted
--                   anything until they are loaded again
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
    putHeld(token, held)
    shrunk[#shrunk + 1] = held
    reply[#reply + 1] = 'shrunk'
  end
end
serve(poolsOf(shrunk))
return reply
