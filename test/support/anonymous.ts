import { ANONYMOUS, type Authenticate } from "../../src/core/access/identity.ts";

/** Takes every caller as anonymous. */
export const anonymous: Authenticate = async () => ({ kind: "identity", identity: ANONYMOUS });
