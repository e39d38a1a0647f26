-- Reads the sums of all scopes, every unconfirmed token, and the named tokens, at one moment. The cost grows with the
-- number of scopes and of these tokens.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, then for each named token: token
-- Reply  {version of the limits, {scope, used, ...}, {token, its value as in common.lua, ...}}; leaves out named tokens
--        that are not held, and may repeat a token
--        'closed'   the domain is not loaded, or has another epoch or server
-- Errors none of its own

if not isOpen(ARGV[1], ARGV[2]) then return 'closed' end
local tokens = {}
local function add(token)
  local text = redis.call('HGET', TOKENS, token)
  if text and token ~= 'load' then
    tokens[#tokens + 1] = token
    tokens[#tokens + 1] = text
  end
end
for _, token in ipairs(redis.call('ZRANGE', UNCONFIRMED, 0, -1)) do add(token) end
for at = 3, #ARGV do add(ARGV[at]) end
return {plain(state.limitsVersion), allSums(), tokens}
