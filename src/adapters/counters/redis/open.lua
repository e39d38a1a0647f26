-- Loads a domain in steps, so that no call takes long: begin, any number of fills, finish. The domain is closed from
-- begin to finish. Of two loads the later one wins; a load of an older epoch does not begin.
--
-- KEYS   as in common.lua
-- ARGV   'begin', load, epoch, run id, channel, version of the limits, maximum tokens, maximum waiters, silent ticks
--            deletes all state and closes the domain; the lease clock restarts from 0
--        'fill', load, number of a key, then field, value, ... or, for a sorted set, score, member, ...
--        'finish', load, grants
--            opens the domain; grants is the counter of the highest filled-in fence of this epoch
-- Reply  begin: 'begun', or 'older' if a later epoch has begun or is open; 'older' changes nothing
--        fill and finish: 'done', or 'lost' if another load began meanwhile or a key was lost; 'lost' changes nothing
-- Errors fill: OOM before anything is written

local step, load = ARGV[1], ARGV[2]

if step == 'begin' then
  local epoch, runId = ARGV[3], ARGV[4]
  local present = redis.call('HMGET', META, 'epoch', 'grants')
  if present[1] and tonumber(present[1]) > tonumber(epoch) then return 'older' end
  -- A domain that is loaded again under the same epoch must not give a fence twice.
  local grants = '0'
  if present[1] == epoch then grants = present[2] or '0' end
  redis.call('UNLINK', unpack(KEYS))
  for at = 1, 5 do redis.call('HSET', KEYS[at], 'load', load) end
  redis.call('ZADD', LINE, 0, 'load:' .. load)
  for at = 7, 9 do redis.call('ZADD', KEYS[at], '+inf', 'load:' .. load) end
  redis.call('HSET', META, 'layout', LAYOUT, 'epoch', epoch, 'runId', runId, 'grants', grants, 'open', '0',
    'channel', ARGV[5], 'clock', '0', 'silent', ARGV[9], 'limitsVersion', ARGV[6], 'tokensMax', ARGV[7],
    'waitersMax', ARGV[8])
  return 'begun'
end

if not hasLoad(load) or redis.call('HGET', META, 'open') ~= '0' then return 'lost' end

if step == 'fill' then
  local number = tonumber(ARGV[3])
  redis.call(number > 5 and 'ZADD' or 'HSET', KEYS[number], unpack(ARGV, 4))
  return 'done'
end

local counted = tonumber(redis.call('HGET', META, 'grants'))
redis.call('HSET', META, 'open', '1', 'grants', plain(math.max(counted, tonumber(ARGV[3]))))
return 'done'
