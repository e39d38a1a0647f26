-- Frees tokens for their holders, each independently, then serves the waiting lines of their pools. The cost grows with
-- those tokens and the waiters that are served.
--
-- KEYS   as in common.lua
-- ARGV   run id, then for each token: token, holder, project, namespace, fence; '' for any
-- Reply  for each token {'freed' | 'otherHolder' | 'otherScope', its value as in common.lua} or {'notHeld'}
--        'closed'   the domain is not loaded, or has another server, or its keys contradict each other; a contradiction
--                   closes the domain until the next load
-- Errors none of its own; a server whose memory is full still frees

if not isOpen(nil, ARGV[1]) then return 'closed' end

local function isOther(asked, value)
  return asked ~= '' and asked ~= value
end

local reply, freed = {}, {}
for at = 2, #ARGV, 5 do
  local token = ARGV[at]
  local text = redis.call('HGET', TOKENS, token)
  local held = text and heldFrom(text)
  if not held or isOther(ARGV[at + 4], held.fence) then
    reply[#reply + 1] = {'notHeld'}
  elseif isOther(ARGV[at + 1], held.holder) then
    reply[#reply + 1] = {'otherHolder', text}
  elseif isOther(ARGV[at + 2], held.project) or isOther(ARGV[at + 3], held.namespace) then
    reply[#reply + 1] = {'otherScope', text}
  else
    if not freeHeld(token, held) then return closeDomain() end
    freed[#freed + 1] = held
    reply[#reply + 1] = {'freed', text}
  end
end
serve(poolsOf(freed))
writeCounts()
return reply
