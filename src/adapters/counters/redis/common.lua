-- The shared start of every script in this folder. The scripts use only commands of Redis 6.2.
--
-- KEYS  the nine keys of one quota domain, which share one hash tag. Each key names the load that made it (a field
--       `load`, or a member `load:...` of a sorted set), so it exists even if it is otherwise empty. The next call
--       therefore notices the loss of any key, and the domain stays closed until the next load.
--   1 meta         layout (of these keys), epoch, runId (of the server that was loaded), load, open (1 or 0), grants
--                  (counter of the newest fence of this epoch), channel (of offers), clock (the lease clock, ms),
--                  silent (ticks since a report), limitsVersion, tokensMax, waitersMax
--   2 limits       pool scope -> JSON [quota, project default, namespace default],
--                  queue scope -> JSON [ceiling, guarantee, parent]; '' for none;
--                  either with '1' at the end while it is frozen
--   3 sums         scope -> used; 'direct' .. queue scope -> use by allocations that name the queue; never 0
--   4 tokens       token -> JSON [fence, amount, holder, pool, project, namespace, queue, lease, expiry, confirmed]
--   5 waiters      waiter -> JSON [order, holder, priority, since, grants, then nine fields of each allocation, as in
--                  grant.lua]
--   6 line         pool .. order .. waiter, all with score 0; order sorts by priority, then age
--   7 expiries     token, scored by the time when it lapses on the lease clock
--   8 unconfirmed  token, scored by the time of its grant on the lease clock
--   9 stands       waiter, scored by the time when its place lapses on the lease clock
--
-- Names are JSON strings made by the caller, so that adjacent names stay apart. Scopes, tokens and holders are JSON
-- lists of names. Fences are decimal. Amounts, sums and limits are integers up to 2^53 - 1, which Lua's doubles hold
-- exactly. They are texts everywhere, since cjson and tostring round. '' means none.

local META, LIMITS, SUMS, TOKENS, WAITERS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local LINE, EXPIRIES, UNCONFIRMED, STANDS = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local AMOUNT_MAX = 9007199254740991
-- The version of the keys' contents. To scripts of another layout the domain is closed, while two versions run side by
-- side. Every change of the contents raises it.
local LAYOUT = '2'

-- The fields of meta, after isOpen has read them.
local state = {}

local function plain(number)
  return string.format('%.0f', number)
end

-- Returns true if all keys are of that load.
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

-- Returns true if all keys exist and were loaded into this server under that epoch (nil: any epoch). Only a load makes
-- a key.
local function isOpen(epoch, runId)
  local meta = redis.call('HMGET', META, 'epoch', 'runId', 'open', 'grants', 'clock', 'channel', 'silent',
    'limitsVersion', 'tokensMax', 'waitersMax', 'layout')
  if not meta[1] or meta[1] ~= (epoch or meta[1]) or meta[2] ~= runId then return false end
  if meta[3] ~= '1' or meta[11] ~= LAYOUT then return false end
  if redis.call('EXISTS', unpack(KEYS)) ~= #KEYS then return false end
  state = {
    epoch = meta[1], grants = tonumber(meta[4]), clock = tonumber(meta[5]), channel = meta[6],
    silent = tonumber(meta[7]), limitsVersion = tonumber(meta[8]), tokensMax = tonumber(meta[9]),
    waitersMax = tonumber(meta[10]),
  }
  return true
end

-- Lets the script write on a server whose memory is full. Such a server refuses a script's first write unless it is a
-- deletion, and then accepts all others.
local function passFull()
  redis.call('HDEL', META, '')
end

-- Closes the domain until the next load, because its keys contradict each other.
local function closeDomain()
  redis.call('HDEL', META, 'open')
  return 'closed'
end

-- Returns {scope, used, ...} of the scopes whose use is above 0, in no order.
local function allSums()
  local sums = {}
  local all = redis.call('HGETALL', SUMS)
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 1) == '[' then
      sums[#sums + 1] = all[at]
      sums[#sums + 1] = all[at + 1]
    end
  end
  return sums
end

-- Returns the value of a token as a table.
local function heldFrom(text)
  local list = cjson.decode(text)
  return {
    fence = list[1], amount = list[2], holder = list[3], pool = list[4], project = list[5], namespace = list[6],
    queue = list[7], lease = list[8], expiry = list[9], confirmed = list[10],
  }
end

-- Returns the token as a table, nil if it is not held.
local function heldOf(token)
  local text = redis.call('HGET', TOKENS, token)
  return text and heldFrom(text) or nil
end

-- Writes a token whose expiry has not changed, or a new one without any.
local function writeHeld(token, held)
  redis.call('HSET', TOKENS, token, cjson.encode({
    held.fence, held.amount, held.holder, held.pool, held.project, held.namespace, held.queue, held.lease, held.expiry,
    held.confirmed,
  }))
end

local function putHeld(token, held)
  writeHeld(token, held)
  if held.expiry == '' then
    redis.call('ZREM', EXPIRIES, token)
  else
    redis.call('ZADD', EXPIRIES, held.expiry, token)
  end
end

-- Returns when a lease that starts now lapses.
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
