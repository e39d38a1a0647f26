-- Grants requests one after the other, each with all its allocations or none. The cost grows with the allocations, and
-- with the waiters of their pools that cannot be granted.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each request: chain or '', stops (1 or 0), holder, priority, waiter or '', number of
--        allocations, then for each allocation: pool, token, amount, project, namespace, queue or '', project cap or
--        '', namespace cap or '', lease or ''
-- Reply  for each request one of
--        {'granted', fence, 'new' | 'held', confirmed (1 or 0), then for each allocation the time until it lapses
--                     or ''}
--        {'exhausted', scope, used, limit, requested, reserved for the head of the waiting line, allocation from 1};
--                     used includes the earlier allocations of the request
--        {'conflict', allocation from 1, confirmed}   its token has another holder or amount, has lapsed, or was not
--                     granted together with the other allocations
--        {'full', maximum number of tokens}
--        {'notTried'}   an earlier request of the same chain was not granted, or a pool refused an earlier request
--                     that stops the call
--        {'closed'}   the epoch has no fence left
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own; OOM before anything is written

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end

local function grant(request)
  local held = known(request.holder, request.allocations)
  if held then
    if held[1] == 'granted' then leaveLine(request.id) end
    return held
  end
  if not hasRoomFor(#request.allocations) then return {'full', plain(state.tokensMax)} end
  local violation, charges = violationFor(request)
  if violation then return {'exhausted', unpack(violation)} end
  local granted = grantAllocations(request.holder, request.allocations, charges)
  if not granted then return {'closed'} end
  leaveLine(request.id)
  return granted
end

local replies, ended, stopped, at = {}, {}, false, 3
while at <= #ARGV do
  local chain, stops, first = ARGV[at], ARGV[at + 1] == '1', at + 6
  local last = first + FIELDS_PER_ALLOCATION * tonumber(ARGV[at + 5]) - 1
  local reply = {'notTried'}
  if not stopped and not ended[chain] then
    reply = grant({
      holder = ARGV[at + 2], priority = tonumber(ARGV[at + 3]), id = ARGV[at + 4],
      allocations = allocationsFrom(ARGV, first, last),
    })
    if reply[1] ~= 'granted' and chain ~= '' then ended[chain] = true end
    stopped = stops and reply[1] == 'exhausted' and isPoolScope(reply[2])
  end
  replies[#replies + 1] = reply
  at = last + 1
end
writeCounts()
return replies
