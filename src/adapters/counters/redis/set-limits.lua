-- Replaces all limits, recomputes the sums of queues from the allocations that name them (guarantees and parents may
-- have changed), and serves every waiting line. The cost grows with the number of limits and sums.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, version, maximum tokens, maximum waiters, then for each limit: scope, value as in common.lua
-- Reply  'set'
--        'older'    a later version is set, and nothing changes
--        'closed'   the domain is not loaded, has another epoch or server, or its keys contradict each other
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
if tonumber(ARGV[3]) < state.limitsVersion then return 'older' end
local load = redis.call('HGET', META, 'load')
-- The deletion comes first: a server whose memory is full accepts it, and then the rest of the script.
redis.call('UNLINK', LIMITS)
redis.call('HSET', LIMITS, 'load', load)
for at = 6, #ARGV, 2 do redis.call('HSET', LIMITS, ARGV[at], ARGV[at + 1]) end
redis.call('HSET', META, 'limitsVersion', ARGV[3], 'tokensMax', ARGV[4], 'waitersMax', ARGV[5])
state.limitsVersion, state.tokensMax, state.waitersMax = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local QUEUE = '["queue",'
local direct = {}
local all = redis.call('HGETALL', SUMS)
for at = 1, #all, 2 do
  local scope = all[at]
  if string.sub(scope, 1, #QUEUE) == QUEUE then
    putUsed(scope, 0)
  elseif string.sub(scope, 1, 6) == 'direct' then
    local names = string.sub(scope, 7 + #QUEUE, -2)
    local pool = poolOf(names)
    direct[#direct + 1] = {pool = pool, queue = string.sub(names, #pool + 2), amount = tonumber(all[at + 1])}
  end
end
for _, allocation in ipairs(direct) do
  local charges = {}
  queueCharges(charges, allocation, allocation.amount, usedOf)
  for _, charge in ipairs(charges) do putUsed(charge.scope, charge.used + charge.amount) end
end

serve(waitedFor())
writeCounts()
return 'set'
