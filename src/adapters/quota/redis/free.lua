-- Frees lines that are held with exactly their fences, then serves the lines of their pools. The cost follows those lines, and whom it serves.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each line: token, fence
-- Reply  for each line 'freed' or 'notHeld'
--        'closed'   not loaded, another epoch or server; also where the keys contradict each other, and then nobody is granted
--                   anything until they are loaded again
-- Errors none of its own; a server whose memory is full still frees

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end

local reply, freed = {}, {}
for at = 3, #ARGV, 2 do
  local token = ARGV[at]
  local held = heldOf(token)
  if held and held.fence == ARGV[at + 1] then
    -- The deletion first: a server whose memory is full takes it, and then the rest of the script.
    redis.call('HDEL', TOKENS, token)
    redis.call('ZREM', EXPIRIES, token)
    redis.call('ZREM', UNCONFIRMED, token)
    if not count(held, -tonumber(held.amount)) then return closeDomain() end
    freed[#freed + 1] = held
    reply[#reply + 1] = 'freed'
  else
    reply[#reply + 1] = 'notHeld'
  end
end
serve(poolsOf(freed))
return reply
