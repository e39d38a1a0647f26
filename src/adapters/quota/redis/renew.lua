-- Gives tokens of one holder a new lease from now on, each for itself.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, holder, then for each line: token, lease or ''
-- Reply  for each line {'renewed', fence, confirmed (1 or 0), how long until it lapses or ''}, {'lapsed', fence}, {'notHeld'} or {'otherHolder'}
--        'closed'   not loaded, another epoch or server
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
