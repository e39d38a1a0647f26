-- Gives tokens of one holder a new lease that starts now, each independently.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, holder, then for each token: token, lease or ''
-- Reply  for each token {'renewed', fence, confirmed (1 or 0), time until it lapses or ''}, {'lapsed', fence},
--        {'notHeld'} or {'otherHolder'}
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()
local reply = {}
for at = 4, #ARGV, 2 do
  local held = heldOf(ARGV[at])
  if not held then
    reply[#reply + 1] = {'notHeld'}
  elseif held.holder ~= ARGV[3] then
    reply[#reply + 1] = {'otherHolder'}
  elseif hasLapsed(held) then
    reply[#reply + 1] = {'lapsed', held.fence}
  else
    held.lease = ARGV[at + 1]
    held.expiry = expiryOf(held.lease)
    putHeld(ARGV[at], held)
    reply[#reply + 1] = {'renewed', held.fence, held.confirmed, leftOf(held)}
  end
end
return reply
