-- Turns over parts of allocations whose fence matches to heirs, in order, then serves the waiting lines of their pools.
-- Nobody else can be granted these tokens, and no limit refuses them. The cost grows with those allocations and the
-- waiters that are served. A repeated call, or one after a smaller amount, changes nothing.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each turn-over: token, fence, amount to keep (0: none), then of the heir: token, fence,
--        amount (at most what is taken counts), holder, project, namespace, queue or ''
-- Reply  for each turn-over 'turnedOver', 'asItIs' (the amount is not larger, or the heir's token is held) or 'notHeld'
--        'closed'   the domain is not loaded, or has another epoch or server, or its keys contradict each other; a
--                   contradiction closes the domain until the next load
-- Errors none of its own; a server whose memory is full still turns over

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
passFull()

local reply, turned = {}, {}
for at = 3, #ARGV, 10 do
  local token, kept, heir = ARGV[at], ARGV[at + 2], ARGV[at + 3]
  local held = heldOf(token)
  if not held or held.fence ~= ARGV[at + 1] then
    reply[#reply + 1] = 'notHeld'
  elseif tonumber(held.amount) <= tonumber(kept) or heldOf(heir) then
    reply[#reply + 1] = 'asItIs'
  else
    local taken = tonumber(held.amount) - tonumber(kept)
    local to = {
      fence = ARGV[at + 4], amount = plain(math.min(tonumber(ARGV[at + 5]), taken)), holder = ARGV[at + 6], pool = held.pool,
      project = ARGV[at + 7], namespace = ARGV[at + 8], queue = ARGV[at + 9], lease = '', expiry = '', confirmed = '1',
    }
    if not count(held, -taken) then return closeDomain() end
    count(to, tonumber(to.amount))
    putHeld(heir, to)
    if kept == '0' then
      redis.call('HDEL', TOKENS, token)
      redis.call('ZREM', EXPIRIES, token)
      redis.call('ZREM', UNCONFIRMED, token)
    else
      held.amount = kept
      putHeld(token, held)
    end
    turned[#turned + 1] = to
    reply[#reply + 1] = 'turnedOver'
  end
end
serve(poolsOf(turned))
writeCounts()
return reply
