import assert from "node:assert/strict";
import type { ResourceManager } from "../../src/api/quota-ports.ts";

/** For servers whose pools nobody asks about. */
export function noResources(): ResourceManager {
  const none = () => assert.fail("nobody asks about pools");
  return {
    registerPool: none,
    allocate: none,
    release: none,
    renew: none,
    wait: none,
    getPool: none,
    listPools: none,
    listAllocations: none,
    forceRelease: none,
    reconcile: none,
    listAudit: none,
  };
}
