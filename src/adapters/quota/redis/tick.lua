-- Advances the lease clock unless it must stand, drops waiters that lapsed, serves every line, and tells what lapsed and what is unconfirmed.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, elapsed ms, ticks without a report after which the clock stands, unconfirmed ms, most of each that is told
-- Reply  {'ticked', clock, advanced (1 or 0), version of the limits, {token, its value, ...} that lapsed, {token, its value, ...} unconfirmed for so long}
--        {'closed'}   not loaded, another epoch or server
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
