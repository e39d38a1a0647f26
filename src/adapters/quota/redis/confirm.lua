-- Notes that the ledger has lines; those that are not held with exactly their fences are passed over.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each line: token, fence
-- Reply  'confirmed'
--        'closed'   not loaded, another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()
for at = 3, #ARGV, 2 do
  local held = heldOf(ARGV[at])
  if held and held.fence == ARGV[at + 1] then
    held.confirmed = '1'
    putHeld(ARGV[at], held)
    redis.call('ZREM', UNCONFIRMED, ARGV[at])
  end
end
return 'confirmed'
