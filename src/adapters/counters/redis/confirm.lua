-- Marks allocations as recorded by the ledger. Skips allocations whose fence does not match.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each allocation: token, fence
-- Reply  'confirmed'
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()
for at = 3, #ARGV, 2 do
  local held = heldOf(ARGV[at])
  if held and held.fence == ARGV[at + 1] then
    held.confirmed = '1'
    writeHeld(ARGV[at], held)
    redis.call('ZREM', UNCONFIRMED, ARGV[at])
  end
end
return 'confirmed'
