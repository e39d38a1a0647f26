-- Finds out whether Redis takes writes.
--
-- KEYS   one key of the domain's slot, which nothing else uses
-- ARGV   run id
-- Reply  'taken'
-- Errors OOM, READONLY, MISCONF, NOREPLICAS
redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)
return 'taken'
