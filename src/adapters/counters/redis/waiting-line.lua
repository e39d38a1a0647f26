-- Follows decide.lua in scripts that grant tokens or free room: requests, waiters and their waiting lines. It decides
-- like core/quota/domain-state.ts.

local FENCES_PER_EPOCH = 4294967296
local FIELDS_PER_ALLOCATION = 9
-- The number of digits of priority and age in front of a waiter.
local ORDER_LENGTH = 26
-- The maximum number of waiters that one call serves. The next call or tick serves the rest.
local SERVED_MAX = 256
local PAGE = 16

-- Reads allocations from a list of texts: pool, token, amount, project, namespace, queue, project cap, namespace cap,
-- lease. Without `last`, reads up to the end.
local function allocationsFrom(list, first, last)
  local allocations = {}
  for at = first, last or #list, FIELDS_PER_ALLOCATION do
    allocations[#allocations + 1] = {
      pool = list[at], key = '[' .. list[at] .. ',' .. list[at + 1] .. ']',
      amount = tonumber(list[at + 2]), amountText = list[at + 2],
      project = list[at + 3], namespace = list[at + 4], queue = list[at + 5],
      capProject = list[at + 6], capNamespace = list[at + 7], lease = list[at + 8],
    }
  end
  return allocations
end

local function poolsOf(allocations)
  local pools, seen = {}, {}
  for _, allocation in ipairs(allocations) do
    if not seen[allocation.pool] then pools[#pools + 1] = allocation.pool end
    seen[allocation.pool] = true
  end
  return pools
end

local function amountOf(allocations, pool)
  local amount = 0
  for _, allocation in ipairs(allocations) do
    if allocation.pool == pool then amount = amount + allocation.amount end
  end
  return amount
end

-- Returns the reply to a request that holds some of its tokens; nil if none of them is held.
local function known(holder, allocations)
  local held, first = {}, nil
  for at, allocation in ipairs(allocations) do
    held[at] = heldOf(allocation.key) or false
    first = first or held[at]
  end
  if not first then return nil end
  local reply = {'granted', first.fence, 'held', '1'}
  for at, allocation in ipairs(allocations) do
    local one = held[at]
    if not one or one.fence ~= first.fence or one.amount ~= allocation.amountText or one.holder ~= holder
      or hasLapsed(one) then
      return {'conflict', at, (one or first).confirmed}
    end
    if one.confirmed ~= '1' then reply[4] = '0' end
    reply[#reply + 1] = leftOf(one)
  end
  return reply
end

-- Returns the number of tokens that are held. Only grants change it after the first call.
local function heldCount()
  state.held = state.held or redis.call('HLEN', TOKENS) - 1
  return state.held
end

local function hasRoomFor(tokens)
  return heldCount() + tokens <= state.tokensMax
end

-- Returns epoch * 2^32 + counter in decimal. A double is not exact beyond 2^53, so the text is joined from two parts:
-- millions and the rest.
local function fenceOf(counter)
  local epoch = tonumber(state.epoch)
  local rest = epoch * 967296 + counter
  local millions = epoch * 4294 + math.floor(rest / 1000000)
  if millions == 0 then return plain(rest) end
  return plain(millions) .. string.format('%06.0f', rest % 1000000)
end

-- Holds the allocations under a new fence and returns the reply; nil if no fence is left. `charges` are those that
-- `violationFor` has just returned.
local function grantAllocations(holder, allocations, charges)
  if state.grants + 1 >= FENCES_PER_EPOCH then return nil end
  state.held = heldCount() + #allocations
  state.grants, state.granted = state.grants + 1, true
  local fence = fenceOf(state.grants)
  local reply = {'granted', fence, 'new', '0'}
  for at, allocation in ipairs(allocations) do
    local expiry = expiryOf(allocation.lease)
    writeHeld(allocation.key, {
      fence = fence, amount = allocation.amountText, holder = holder, pool = allocation.pool,
      project = allocation.project, namespace = allocation.namespace, queue = allocation.queue,
      lease = allocation.lease, expiry = expiry, confirmed = '0',
    })
    if expiry ~= '' then redis.call('ZADD', EXPIRIES, expiry, allocation.key) end
    redis.call('ZADD', UNCONFIRMED, plain(state.clock), allocation.key)
    count(allocation, allocation.amount, charges[at])
    reply[#reply + 1] = allocation.lease
  end
  return reply
end

-- Frees a held token. Returns false if a sum contradicts it.
local function freeHeld(token, held)
  -- The deletion comes first: a server whose memory is full accepts it, and then the rest of the script.
  redis.call('HDEL', TOKENS, token)
  if held.expiry ~= '' then redis.call('ZREM', EXPIRIES, token) end
  if held.confirmed ~= '1' then redis.call('ZREM', UNCONFIRMED, token) end
  return count(held, -tonumber(held.amount))
end

-- Writes what grants and releases have changed. Every script that grants or frees ends with it.
local function writeCounts()
  if state.granted then redis.call('HSET', META, 'grants', plain(state.grants)) end
  state.granted = false
  writeSums()
end

-- Returns the waiter as a table, nil if it has no place.
local function waiterOf(id)
  local text = redis.call('HGET', WAITERS, id)
  if not text then return nil end
  local list = cjson.decode(text)
  return {
    id = id, text = text, order = list[1], holder = list[2], priority = tonumber(list[3]), grants = list[5] == '1',
    allocations = allocationsFrom(list, 6),
  }
end

local function removeWaiter(entry)
  redis.call('HDEL', WAITERS, entry.id)
  redis.call('ZREM', STANDS, entry.id)
  for _, pool in ipairs(poolsOf(entry.allocations)) do redis.call('ZREM', LINE, pool .. entry.order .. entry.id) end
end

-- Publishes a hint that a waiter should ask again. A user without the right to publish must not stop the script here,
-- in the middle of its changes.
local function offer(id)
  redis.pcall('PUBLISH', state.channel, id)
end

-- The pools whose waiting lines this call has found empty. Only `stand` adds a waiter, before it visits any line.
local empty = {}

-- Visits the waiters of a pool in order, until a visit returns true. A visit may remove its waiter.
local function visitLine(pool, visit)
  if empty[pool] then return end
  local from = '[' .. pool
  while true do
    local members = redis.call('ZRANGEBYLEX', LINE, from, '(' .. pool .. ':', 'LIMIT', 0, PAGE)
    if #members == 0 and from == '[' .. pool then empty[pool] = true end
    for _, member in ipairs(members) do
      local entry = waiterOf(string.sub(member, #pool + ORDER_LENGTH + 1))
      if entry and visit(entry) then return end
    end
    if #members < PAGE then return end
    from = '(' .. members[#members]
  end
end

-- Returns true if only the current use of the pools can refuse the allocations: queues and caps allow them now, and
-- they would fit into empty pools.
local function lacksOnlyPools(allocations)
  local pools = {}
  for _, allocation in ipairs(allocations) do pools[poolScope(allocation.pool)] = true end
  return not firstViolation(allocations, function(scope) return pools[scope] and 0 or usedOf(scope) end)
end

-- Returns the limit that refuses a request at its place in the waiting line; nil and its charges if it fits. `asking`
-- has allocations, priority and id ('' if it does not wait).
local function violationFor(asking)
  local own = asking.id ~= '' and waiterOf(asking.id)
  return firstViolation(asking.allocations, usedOf, function(pool)
    local reserved = 0
    visitLine(pool, function(entry)
      if entry.id == asking.id then return true end
      if known(entry.holder, entry.allocations) or not lacksOnlyPools(entry.allocations) then return false end
      local stands = own and amountOf(own.allocations, pool) > 0
      if stands or asking.priority <= entry.priority then reserved = amountOf(entry.allocations, pool) end
      return true
    end)
    return reserved
  end)
end

-- Serves the head of a waiting line. Returns true if it was granted, false if the waiting line stops at it.
local function serveHead(entry)
  local violation, charges = violationFor(entry)
  if violation then return false end
  if not entry.grants then
    offer(entry.id)
    return false
  end
  return hasRoomFor(#entry.allocations) and grantAllocations(entry.holder, entry.allocations, charges) ~= nil
end

-- Serves the waiting lines of these pools: grants to their heads while requests fit. A head that asks for the grant
-- itself gets an offer instead.
local function serve(pools)
  local left = SERVED_MAX
  for _, pool in ipairs(pools) do
    if left > 0 then
      visitLine(pool, function(entry)
        local is = known(entry.holder, entry.allocations)
        if is then
          if is[1] ~= 'granted' then return false end
        elseif not lacksOnlyPools(entry.allocations) then
          return false
        elseif not serveHead(entry) then
          return true
        end
        removeWaiter(entry)
        offer(entry.id)
        left = left - 1
        return left == 0
      end)
    end
  end
end

-- Removes a waiter from its waiting lines and serves them; false if it has no place.
local function leaveLine(id)
  local entry = id ~= '' and waiterOf(id)
  if not entry then return false end
  removeWaiter(entry)
  serve(poolsOf(entry.allocations))
  return true
end

-- Returns the pool at the start of a member of `line`: a JSON string, which ends at the first unescaped quote.
local function poolOf(member)
  local at = 2
  while string.sub(member, at, at) ~= '"' do
    at = at + (string.sub(member, at, at) == '\\' and 2 or 1)
  end
  return string.sub(member, 1, at)
end

-- Returns all pools that have waiters.
local function waitedFor()
  local pools, from = {}, '-'
  while true do
    local member = redis.call('ZRANGEBYLEX', LINE, from, '(l', 'LIMIT', 0, 1)[1]
    if not member then return pools end
    pools[#pools + 1] = poolOf(member)
    from = '(' .. pools[#pools] .. ':'
  end
end
