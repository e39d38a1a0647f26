-- Follows common.lua in scripts that count: the charges of allocations, and the limits that refuse them. It decides
-- like core/quota/decide.ts.

local QUEUE_DEPTH_MAX = 64
-- Arguments of one command, below the number that Lua can unpack. Even, so that fields stay with their values.
local ARGUMENTS_MAX = 1000

-- The sums and limits that this call has read, and the sums that it has changed.
local sums, limits, changed = {}, {}, {}

local function usedOf(scope)
  local used = sums[scope]
  if not used then
    used = tonumber(redis.call('HGET', SUMS, scope) or '0')
    sums[scope] = used
  end
  return used
end

-- Reads sums that most calls need in one command.
local function readUsed(scopes)
  if sums[scopes[1]] and sums[scopes[2]] and sums[scopes[3]] then return end
  local found = redis.call('HMGET', SUMS, unpack(scopes))
  for at, scope in ipairs(scopes) do
    sums[scope] = sums[scope] or tonumber(found[at] or '0')
  end
end

local function putUsed(scope, used)
  sums[scope] = used
  changed[scope] = true
end

-- Writes the sums that have changed. Every script that counts calls it at its end, since a call changes the same sums
-- again and again.
local function writeSums()
  local written, gone = {}, {}
  for scope in pairs(changed) do
    if sums[scope] == 0 then
      gone[#gone + 1] = scope
    else
      written[#written + 1] = scope
      written[#written + 1] = plain(sums[scope])
    end
  end
  for at = 1, #gone, ARGUMENTS_MAX do
    redis.call('HDEL', SUMS, unpack(gone, at, math.min(#gone, at + ARGUMENTS_MAX - 1)))
  end
  for at = 1, #written, ARGUMENTS_MAX do
    redis.call('HSET', SUMS, unpack(written, at, math.min(#written, at + ARGUMENTS_MAX - 1)))
  end
  changed = {}
end

local function limitsOf(scope, unnamed)
  local found = limits[scope]
  if not found then
    local text = redis.call('HGET', LIMITS, scope)
    found = text and cjson.decode(text) or unnamed
    limits[scope] = found
  end
  return found
end

-- Returns the tighter of two limits. nil or '': no limit.
local function tighter(one, other)
  return math.min(tonumber(one) or AMOUNT_MAX, tonumber(other) or AMOUNT_MAX)
end

local function poolScope(pool)
  return '["pool",' .. pool .. ']'
end

local function isPoolScope(scope)
  return string.sub(scope, 1, 8) == '["pool",'
end

local function queueScope(pool, queue)
  return '["queue",' .. pool .. ',' .. queue .. ']'
end

-- True while a call asks what could fit without freezes.
local ignoresFreezes = false

-- Returns the limit of a scope: 0 for one that is frozen, unless the call ignores freezes.
local function limitNow(limit, frozen)
  return frozen and not ignoresFreezes and 0 or limit
end

-- Appends the charges to a queue and the queues above, up to the first queue that passes nothing on.
local function queueCharges(charges, allocation, amount, use)
  local queue, passed, depth = allocation.queue, amount, 0
  while queue ~= '' and passed ~= 0 and depth < QUEUE_DEPTH_MAX do
    local scope = queueScope(allocation.pool, queue)
    local used, limit = use(scope), limitsOf(scope, {'0', '0', ''})
    charges[#charges + 1] = {
      scope = scope, used = used, amount = passed, limit = limitNow(tonumber(limit[1]), limit[4]), frozen = limit[4],
    }
    local guarantee = tonumber(limit[2])
    passed = math.max(0, used + passed - guarantee) - math.max(0, used - guarantee)
    queue, depth = limit[3], depth + 1
  end
end

-- Returns what an allocation adds (or takes off, for a negative amount), in the order of the checks.
local function chargesOf(allocation, amount, use)
  local pool = poolScope(allocation.pool)
  local projectNames = allocation.pool .. ',' .. allocation.project
  local project = '["project",' .. projectNames .. ']'
  local namespace = '["namespace",' .. projectNames .. ',' .. allocation.namespace .. ']'
  readUsed({pool, project, namespace})
  local limit = limitsOf(pool, {'0', '0', '0'})
  local quota = limitNow(tighter(limit[1]), limit[4])
  local charges = {{
    scope = pool, used = use(pool), amount = amount, limit = quota, isPool = true, frozen = limit[4],
  }}
  queueCharges(charges, allocation, amount, use)
  charges[#charges + 1] = {
    scope = project, used = use(project), amount = amount, limit = tighter(limit[2], allocation.capProject),
  }
  charges[#charges + 1] = {
    scope = namespace, used = use(namespace), amount = amount, limit = tighter(limit[3], allocation.capNamespace),
  }
  return charges
end

-- Returns the first refusing scope of the first allocation that does not fit, as {scope, used, limit, requested,
-- reserved, allocation from 1, 1 if the scope is frozen, else ''}; nil and the charges of each allocation if all fit.
local function firstViolation(allocations, usedNow, reservedIn)
  local added, all = {}, {}
  local function use(scope) return usedNow(scope) + (added[scope] or 0) end
  for at, allocation in ipairs(allocations) do
    all[at] = chargesOf(allocation, allocation.amount, use)
    for _, charge in ipairs(all[at]) do
      local reserved = 0
      if charge.isPool and reservedIn then reserved = reservedIn(allocation.pool) end
      if charge.amount > charge.limit - charge.used - reserved then
        local frozen = charge.frozen and not ignoresFreezes and '1' or ''
        return {
          charge.scope, plain(charge.used), plain(charge.limit), plain(charge.amount), plain(reserved), plain(at), frozen,
        }
      end
      added[charge.scope] = (added[charge.scope] or 0) + charge.amount
    end
  end
  return nil, all
end

-- Adds an allocation to the sums, or takes it off. Returns false if a sum would fall below 0. `charges` are those that
-- `firstViolation` has returned, if nothing was counted since. Omitted: they are computed.
local function count(allocation, amount, charges)
  for _, charge in ipairs(charges or chargesOf(allocation, amount, usedOf)) do
    local used = charge.used + charge.amount
    if used < 0 then return false end
    putUsed(charge.scope, used)
  end
  if allocation.queue ~= '' then
    local direct = 'direct' .. queueScope(allocation.pool, allocation.queue)
    putUsed(direct, usedOf(direct) + amount)
  end
  return true
end
