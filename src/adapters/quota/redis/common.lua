-- Put in front of every script of this folder. Commands of Redis 6.2 only.
--
-- KEYS  nine keys of one quota domain; they share one hash tag. Each names the load that made it (a field `load`, or a member
--       `load:...` of a sorted set), so that it is there even if nothing else is: a key that was lost, alone or with the others, is
--       noticed by the next call, and the domain is closed until it is loaded again.
--   1 meta         layout (of these keys), epoch, runId (of the server that was loaded), load, open (1 or 0), grants (counter of the newest fence of this epoch), channel (of
--                  offers), clock (the lease clock, ms), silent (ticks since a report), limitsVersion, tokensMax, waitersMax
--   2 limits       pool scope -> JSON [quota, project default, namespace default], queue scope -> JSON [ceiling, guarantee, parent]; '' for none
--   3 sums         scope -> used; direct.. queue scope -> what lines name that queue themselves; never 0
--   4 tokens       token -> JSON [fence, amount, holder, pool, project, namespace, queue, lease, expiry, confirmed]
--   5 waiters      waiter -> JSON [order, holder, priority, since, grants, then nine fields of each line, as grant.lua takes them]
--   6 line         all with score 0: pool .. order .. waiter; order sorts by priority, then age
--   7 expiries     token, by when it lapses on the lease clock
--   8 unconfirmed  token, by when it was granted on the lease clock
--   9 stands       waiter, by when it lapses on the lease clock
--
-- Names are JSON strings made by the caller, so that no name can run into its neighbour; scopes, tokens and holders are JSON lists of such. Fences
-- are decimal. Amounts, sums and limits are whole numbers up to 2^53 - 1, which Lua's doubles hold exactly; they are texts everywhere,
-- since cjson and tostring round. '' stands for none.

local META, LIMITS, SUMS, TOKENS, WAITERS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local LINE, EXPIRIES, UNCONFIRMED, STANDS = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local AMOUNT_MAX = 9007199254740991
-- Raised with every change of what the keys hold: to scripts of another layout the domain is closed, while two versions run side by side.
local LAYOUT = '2'

-- What meta says, once isOpen has looked.
local state = {}

local function plain(number)
  return string.format('%.0f', number)
end

-- True if all keys are of that load.
local function hasLoad(load)
  if not load then return false end
  for at = 1, 5 do
    if redis.call('HGET', KEYS[at], 'load') ~= load then return false end
  end
  for at = 6, 9 do
    if not redis.call('ZSCORE', KEYS[at], 'load:' .. load) then return false end
  end
  return true
end

-- True if everything is there, and was loaded into this very server under that epoch (any, for nil). Nobody but a load makes a key.
local function isOpen(epoch, runId)
  local meta = redis.call('HMGET', META, 'epoch', 'runId', 'open', 'grants', 'clock', 'channel', 'silent', 'limitsVersion',
    'tokensMax', 'waitersMax', 'layout')
  if not meta[1] or meta[1] ~= (epoch or meta[1]) or meta[2] ~= runId or meta[3] ~= '1' or meta[11] ~= LAYOUT then return false end
  if redis.call('EXISTS', unpack(KEYS)) ~= #KEYS then return false end
  state = {
    epoch = meta[1], grants = tonumber(meta[4]), clock = tonumber(meta[5]), channel = meta[6], silent = tonumber(meta[7]),
    limitsVersion = tonumber(meta[8]), tokensMax = tonumber(meta[9]), waitersMax = tonumber(meta[10]),
  }
  return true
end

-- A server whose memory is full refuses the first write of a script unless it deletes, and lets pass what comes after.
local function passFull()
  redis.call('HDEL', META, '')
end

-- The keys contradict each other: nobody is granted anything until they are loaded again.
local function closeDomain()
  redis.call('HDEL', META, 'open')
  return 'closed'
end

-- The token as a table; nil if it is not held.
local function heldOf(token)
  local text = redis.call('HGET', TOKENS, token)
  if not text then return nil end
  local list = cjson.decode(text)
  return {
    fence = list[1], amount = list[2], holder = list[3], pool = list[4], project = list[5], namespace = list[6], queue = list[7],
    lease = list[8], expiry = list[9], confirmed = list[10],
  }
end

local function putHeld(token, held)
  redis.call('HSET', TOKENS, token, cjson.encode({
    held.fence, held.amount, held.holder, held.pool, held.project, held.namespace, held.queue, held.lease, held.expiry, held.confirmed,
  }))
  if held.expiry == '' then
    redis.call('ZREM', EXPIRIES, token)
  else
    redis.call('ZADD', EXPIRIES, held.expiry, token)
  end
end

-- When a lease that begins now lapses.
local function expiryOf(lease)
  if lease == '' then return '' end
  return plain(state.clock + tonumber(lease))
end

local function hasLapsed(held)
  return held.expiry ~= '' and tonumber(held.expiry) <= state.clock
end

local function leftOf(held)
  if held.expiry == '' then return '' end
  return plain(tonumber(held.expiry) - state.clock)
end
