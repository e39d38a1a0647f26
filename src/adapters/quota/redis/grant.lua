-- Grants all lines or none. The cost follows the lines of the request alone.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, holder, then for each line: token, amount, queue scope, pool scope, project scope, namespace scope
-- Reply  {'granted', fence, 'new' | 'held'}
--        {'exhausted', line, scope, used, limit}   line from 1, scope from 1 (queue) to 4; used counts earlier lines of the request
--        {'conflict', line}                        its token is held otherwise, or only some of the tokens are held
--        {'closed'}                                not loaded, another epoch or server, or no fence is left in this epoch
-- Errors none of its own; OOM before anything is written

local epoch, runId, holder = ARGV[1], ARGV[2], ARGV[3]
local FIRST, PER_LINE = 4, 6

if not isOpen(epoch, runId) then return {'closed'} end

local lines = {}
for at = FIRST, #ARGV, PER_LINE do
  lines[#lines + 1] = {token = ARGV[at], amount = ARGV[at + 1], scopes = {unpack(ARGV, at + 2, at + 5)}}
end

local first
for _, line in ipairs(lines) do
  local held = redis.call('HGET', TOKENS, line.token)
  if held then
    line.held = cjson.decode(held)
    first = first or line.held[1]
  end
end
if first then
  for at, line in ipairs(lines) do
    local held = line.held
    if not held or held[1] ~= first or held[2] ~= line.amount or held[3] ~= holder then return {'conflict', at} end
  end
  return {'granted', first, 'held'}
end

local used = {}
for at, line in ipairs(lines) do
  local amount = tonumber(line.amount)
  for scopeAt, scope in ipairs(line.scopes) do
    local before = used[scope] or sumOf(scope)
    local limit = AMOUNT_MAX
    if scopeAt == 1 then limit = tonumber(redis.call('HGET', LIMITS, scope) or '0') end
    if amount > limit - before then return {'exhausted', at, scopeAt, plain(before), plain(limit)} end
    used[scope] = before + amount
  end
end

local counter = tonumber(redis.call('HGET', META, 'grants')) + 1
if counter >= FENCES_PER_EPOCH then return {'closed'} end

-- epoch * 2^32 + counter in decimal: beyond 2^53 a double is not exact, so it is put together from two parts, millions and the rest.
local millions = tonumber(epoch) * 4294
local rest = tonumber(epoch) * 967296 + counter
millions = millions + math.floor(rest / 1000000)
local fence = plain(millions) .. string.format('%06.0f', rest % 1000000)
if millions == 0 then fence = plain(rest) end

redis.call('HSET', META, 'grants', plain(counter))
local tokens = {}
for at, line in ipairs(lines) do
  tokens[at] = line.token
  redis.call('HSET', TOKENS, line.token, cjson.encode({fence, line.amount, holder, unpack(line.scopes)}))
end
redis.call('HSET', FENCES, fence, cjson.encode(tokens))
for scope, sum in pairs(used) do putSum(scope, sum) end
return {'granted', fence, 'new'}
