-- Put in front of every script of this folder. Commands of Redis 6.2 only.
--
-- KEYS  five hashes of one quota domain; they share one hash tag. The field `load` of each names the load that made it, so that
--       a key that was lost, alone or with the others, is noticed by the next call: the domain is closed until it is loaded again.
--   1 meta    epoch, runId (of the server that was loaded), load, open (1 or 0), grants (counter of the newest fence of this epoch)
--   2 limits  queue scope -> limit; a scope that is not there has the limit 0
--   3 sums    scope -> used; never 0
--   4 tokens  token -> JSON [fence, amount, holder, queue scope, pool scope, project scope, namespace scope]
--   5 fences  fence -> JSON [token, ...]
--
-- Scopes, tokens and holders are JSON text made by the caller; none is called `load`. Fences are decimal. Amounts, sums and limits
-- are whole numbers up to 2^53 - 1, which Lua's doubles hold exactly; they are texts everywhere, since cjson and tostring round.

local META, LIMITS, SUMS, TOKENS, FENCES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local AMOUNT_MAX = 9007199254740991
local FENCES_PER_EPOCH = 4294967296

local function plain(number)
  return string.format('%.0f', number)
end

-- True if all keys are of that load.
local function hasLoad(load)
  for _, key in ipairs(KEYS) do
    if redis.call('HGET', key, 'load') ~= load then return false end
  end
  return true
end

-- True if everything is there, and was loaded into this very server under that epoch.
local function isOpen(epoch, runId)
  local meta = redis.call('HMGET', META, 'epoch', 'runId', 'load', 'open')
  return meta[1] == epoch and meta[2] == runId and meta[4] == '1' and hasLoad(meta[3])
end

local function sumOf(scope)
  return tonumber(redis.call('HGET', SUMS, scope) or '0')
end

local function putSum(scope, used)
  if used == 0 then
    redis.call('HDEL', SUMS, scope)
  else
    redis.call('HSET', SUMS, scope, plain(used))
  end
end
