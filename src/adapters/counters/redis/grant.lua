-- Grants all allocations of a request or none. The cost grows with the allocations, and with the waiters of their pools
-- that cannot be granted.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, holder, priority, waiter or '', then for each allocation: pool, token, amount, project,
--        namespace, queue or '', project cap or '', namespace cap or '', lease or ''
-- Reply  {'granted', fence, 'new' | 'held', confirmed (1 or 0), then for each allocation the time until it lapses
--                     or ''}
--        {'exhausted', scope, used, limit, requested, reserved for the head of the waiting line, allocation from 1};
--                     used includes the earlier allocations of the request
--        {'conflict', allocation from 1, confirmed}   its token has another holder or amount, has lapsed, or was not
--                     granted together with the other allocations
--        {'full', maximum number of tokens}
--        {'closed'}   the domain is not loaded, has another epoch or server, or has no fence left in this epoch
-- Errors none of its own; OOM before anything is written

if not isOpen(ARGV[1], ARGV[2]) then return {'closed'} end
local holder, waiter, allocations = ARGV[3], ARGV[5], allocationsFrom(ARGV, 6)

local held = known(holder, allocations)
if held then
  if held[1] == 'granted' then leaveLine(waiter) end
  return held
end
if not hasRoomFor(#allocations) then return {'full', plain(state.tokensMax)} end
local violation = violationFor({id = waiter, priority = tonumber(ARGV[4]), allocations = allocations})
if violation then return {'exhausted', unpack(violation)} end
local granted = grantAll(holder, allocations)
if not granted then return {'closed'} end
leaveLine(waiter)
return granted
