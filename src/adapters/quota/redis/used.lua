-- Reads the sums of all scopes. The cost follows their number.
--
-- KEYS   as in common.lua
-- ARGV   run id
-- Reply  {scope, used, ...} of the scopes with a use above 0, in no order; {} where the domain is closed
-- Errors none of its own

local epoch = redis.call('HGET', META, 'epoch')
if not epoch or not isOpen(epoch, ARGV[1]) then return {} end
local reply = {}
local sums = redis.call('HGETALL', SUMS)
for at = 1, #sums, 2 do
  if sums[at] ~= 'load' then
    reply[#reply + 1] = sums[at]
    reply[#reply + 1] = sums[at + 1]
  end
end
return reply
