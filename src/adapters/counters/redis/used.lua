-- Reads the sums of all scopes. The cost grows with their number.
--
-- KEYS   as in common.lua
-- ARGV   run id
-- Reply  {scope, used, ...} of the scopes whose use is above 0, in no order; {} if the domain is closed
-- Errors none of its own

if not isOpen(nil, ARGV[1]) then return {} end
return allSums()
