-- Reads a page of held tokens.
--
-- KEYS   as in common.lua
-- ARGV   run id, cursor ('0' for the first page), approximate page size
-- Reply  {next cursor, or '0' at the end, {token, its value as in common.lua, ...}}; {'0', {}} if the domain is closed
-- Errors none of its own

if not isOpen(nil, ARGV[1]) then return {'0', {}} end
local page = redis.call('HSCAN', TOKENS, ARGV[2], 'COUNT', ARGV[3])
local tokens = {}
for at = 1, #page[2], 2 do
  if page[2][at] ~= 'load' then
    tokens[#tokens + 1] = page[2][at]
    tokens[#tokens + 1] = page[2][at + 1]
  end
end
return {page[1], tokens}
