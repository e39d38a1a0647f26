-- Puts a waiter into the waiting lines of its pools, or keeps its places. If `grants` is set, a request that fits is
-- granted at once.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, waiter, ms until its place lapses, order, holder, priority, since, grants (1 or 0), then each
--        allocation as in grant.lua
-- Reply  {'granted', ...} and {'conflict', ...} as in grant.lua; the waiter has no place then
--        {'waiting', position from 1}, followed by the violation as in decide.lua if a limit refuses it
--        {'never', scope, used, limit, requested, 0}   the request exceeds a limit even if nothing is in use or
--                     frozen; the waiter has no place then
--        {'full', maximum number of tokens}            the waiter has no place then
--        {'lineFull', maximum number of waiters}
--        {'closed'}   the domain is not loaded, has another epoch or server, or has no fence left in this epoch
-- Errors none of its own; OOM before anything is written

if not isOpen(ARGV[1], ARGV[2]) then return {'closed'} end
local id = ARGV[3]
local text = cjson.encode({unpack(ARGV, 5)})
local list = cjson.decode(text)
local entry = {
  id = id, text = text, order = list[1], holder = list[2], priority = tonumber(list[3]), grants = list[5] == '1',
  allocations = allocationsFrom(list, 6),
}
local before = waiterOf(id)

local function refusal()
  local held = known(entry.holder, entry.allocations)
  if held then return held end
  ignoresFreezes = true
  local violation = firstViolation(entry.allocations, function() return 0 end)
  ignoresFreezes = false
  if violation then
    violation[2] = plain(usedOf(violation[1]))
    return {'never', unpack(violation)}
  end
  if entry.grants and not hasRoomFor(1) then return {'full', plain(state.tokensMax)} end
  return nil
end

local refused = refusal()
if refused then
  leaveLine(id)
  writeCounts()
  return refused
end
if not before and redis.call('HLEN', WAITERS) - 1 >= state.waitersMax then
  return {'lineFull', plain(state.waitersMax)}
end

if before then removeWaiter(before) end
redis.call('HSET', WAITERS, id, text)
redis.call('ZADD', STANDS, plain(state.clock + tonumber(ARGV[4])), id)
for _, pool in ipairs(poolsOf(entry.allocations)) do redis.call('ZADD', LINE, 0, pool .. entry.order .. id) end

local violation, charges = violationFor(entry)
if entry.grants and not violation then
  local granted = grantAllocations(entry.holder, entry.allocations, charges)
  if not granted then return {'closed'} end
  removeWaiter(entry)
  local allocations = {}
  for _, allocation in ipairs(before and before.allocations or {}) do allocations[#allocations + 1] = allocation end
  for _, allocation in ipairs(entry.allocations) do allocations[#allocations + 1] = allocation end
  serve(poolsOf(allocations))
  writeCounts()
  return granted
end
if before and before.text ~= text then serve(poolsOf(before.allocations)) end
writeCounts()

local position = 0
for _, pool in ipairs(poolsOf(entry.allocations)) do
  local ahead = redis.call('ZLEXCOUNT', LINE, '[' .. pool, '(' .. pool .. entry.order .. id)
  position = math.max(position, ahead + 1)
end
return {'waiting', position, unpack(violation or {})}
