import assert from "node:assert/strict";
import type { TokenOperations } from "../../src/api/resource-manager/quota-ports.ts";

/** For servers of tests that use no pools. */
export function noResources(): TokenOperations {
  const none = () => assert.fail("this test uses no pools");
  return {
    registerPool: none,
    freezePool: none,
    deletePool: none,
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
