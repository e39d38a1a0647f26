-- Frees the lines of a fence. The cost follows those lines alone.
--
-- KEYS   as in common.lua
-- ARGV   epoch, run id, fence
-- Reply  'freed' | 'notHeld'
--        'closed'   not loaded, another epoch or server; also where the keys contradict each other, and then nobody is granted
--                   anything until they are loaded again
-- Errors none of its own; a server whose memory is full still frees

local epoch, runId, fence = ARGV[1], ARGV[2], ARGV[3]

if not isOpen(epoch, runId) then return 'closed' end
local found = redis.call('HGET', FENCES, fence)
if not found then return 'notHeld' end

local function close()
  redis.call('HDEL', META, 'open')
  return 'closed'
end

local tokens = cjson.decode(found)
local left = {}
for _, token in ipairs(tokens) do
  local held = redis.call('HGET', TOKENS, token)
  if not held then return close() end
  held = cjson.decode(held)
  for at = 4, #held do
    local scope = held[at]
    left[scope] = (left[scope] or sumOf(scope)) - tonumber(held[2])
    if left[scope] < 0 then return close() end
  end
end

-- Deletions first: a server whose memory is full takes them, and then the rest of the script.
redis.call('HDEL', FENCES, fence)
for _, token in ipairs(tokens) do redis.call('HDEL', TOKENS, token) end
for scope, used in pairs(left) do putSum(scope, used) end
return 'freed'
