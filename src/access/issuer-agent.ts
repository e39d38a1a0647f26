/** Connects to an issuer, with bounds for the time and the size of its answers. */
import { Agent } from "undici";

export const ISSUER_TIMEOUT_MS = 5_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

/**
 * Connects with the authorities as their file has them now: it may be replaced while the service runs. `ca` null: those
 * that Node trusts.
 */
export function followAgent(ca: (() => Promise<string>) | null): () => Promise<Agent> {
  let agent: Agent | null = null;
  let seen: string | null = null;
  return async () => {
    const now = ca === null ? null : await ca();
    if (agent !== null && now === seen) return agent;
    void agent?.close();
    seen = now;
    agent = new Agent({
      maxResponseSize: ANSWER_BYTES_MAX,
      connect: now === null ? {} : { ca: now },
      headersTimeout: ISSUER_TIMEOUT_MS,
      bodyTimeout: ISSUER_TIMEOUT_MS,
    });
    return agent;
  };
}
