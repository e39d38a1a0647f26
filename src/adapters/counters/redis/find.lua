-- Reads tokens as they are held.
--
-- KEYS   as in common.lua
-- ARGV   run id, then for each token: token
-- Reply  for each token its value as in common.lua, then the time until it lapses or ''; both '' if it is not held
--        'closed'   the domain is not loaded, or has another server
-- Errors none of its own

if not isOpen(nil, ARGV[1]) then return 'closed' end
local reply = {}
for at = 2, #ARGV do
  local text, left = redis.call('HGET', TOKENS, ARGV[at]) or '', ''
  if text ~= '' then left = leftOf(heldOf(ARGV[at])) end
  reply[#reply + 1] = text
  reply[#reply + 1] = left
end
return reply
