-- Advances the lease clock unless reports are missing, drops lapsed waiters, serves every waiting line, and returns
-- lapsed and unconfirmed tokens.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, elapsed ms, ticks without a report after which the clock stops, age in ms of unconfirmed
--        tokens to return, maximum number of tokens of each kind
-- Reply  {'ticked', clock, advanced (1 or 0), version of the limits, {lapsed token, its value, ...},
--        {unconfirmed token, its value, ...}}
--        {'closed'}   the domain is not loaded, or has another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return {'closed'} end
passFull()
local advanced = state.silent < tonumber(ARGV[4])
if advanced then
  state.clock = state.clock + tonumber(ARGV[3])
  redis.call('HSET', META, 'clock', plain(state.clock), 'silent', plain(state.silent + 1))
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', STANDS, '-inf', plain(state.clock))) do
  local entry = waiterOf(id)
  if entry then removeWaiter(entry) end
end
serve(waitedFor())
writeCounts()

local function tokensUntil(key, untilMs)
  local found = {}
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', plain(untilMs), 'LIMIT', 0, ARGV[6])) do
    found[#found + 1] = token
    found[#found + 1] = redis.call('HGET', TOKENS, token)
  end
  return found
end

local lapsed = tokensUntil(EXPIRIES, state.clock)
local unconfirmed = tokensUntil(UNCONFIRMED, state.clock - tonumber(ARGV[5]))
return {'ticked', plain(state.clock), advanced and '1' or '0', plain(state.limitsVersion), lapsed, unconfirmed}
