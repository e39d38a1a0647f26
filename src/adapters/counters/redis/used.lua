-- Reads the sums of all scopes. The cost grows with their number.
--
-- KEYS   as in common.lua
-- ARGV   run id
-- Reply  {scope, used, ...} of the scopes whose use is above 0, in no order; {} if the domain is closed
-- Errors none of its own

if not isOpen(nil, ARGV[1]) then return {} end
local reply = {}
local all = redis.call('HGETALL', SUMS)
for at = 1, #all, 2 do
  if string.sub(all[at], 1, 1) == '[' then
    reply[#reply + 1] = all[at]
    reply[#reply + 1] = all[at + 1]
  end
end
return reply
