-- Grants all lines or none. The cost follows the lines of the request, and those who wait for their pools and cannot be granted.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, holder, priority, waiter or '', then for each line: pool, token, amount, project, namespace, queue or '', project
--        cap or '', namespace cap or '', lease or ''
-- Reply  {'granted', fence, 'new' | 'held', confirmed (1 or 0), then for each line how long until it lapses or ''}
--        {'exhausted', scope, used, limit, requested, reserved for the head of the line, line from 1}; used counts earlier lines of the
--         request
--        {'conflict', line from 1, confirmed}   its token is held otherwise or has lapsed, or only some of the tokens are held
--        {'full', most tokens of the domain}
--        {'closed'}                             not loaded, another epoch or server, or no fence is left in this epoch
-- Errors none of its own; OOM before anything is written

if not isOpen(ARGV[1], ARGV[2]) then return {'closed'} end
local holder, waiter, lines = ARGV[3], ARGV[5], linesFrom(ARGV, 6)

local held = known(holder, lines)
if held then
  if held[1] == 'granted' then leaveLine(waiter) end
  return held
end
if not hasRoomFor(#lines) then return {'full', plain(state.tokensMax)} end
local violation = violationFor({id = waiter, priority = tonumber(ARGV[4]), lines = lines})
if violation then return {'exhausted', unpack(violation)} end
local granted = grantLines(holder, lines)
if not granted then return {'closed'} end
leaveLine(waiter)
return granted
