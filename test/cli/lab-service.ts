/** A whole service on embedded parts, with one simulated cluster that is registered as a real one, for commands. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import type { SimNode } from "../../src/adapters/simcluster/sim-cluster.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { startSim } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type Ran, run, type World } from "./harness.ts";

/** Starts it. `files`: those that commands find; may get more later. */
export async function startLab(nodes: readonly SimNode[], files: Record<string, string> = {}) {
  const data = newDataFolder("gangway-lab-");
  const sim = await startSim(nodes);
  files["lab.kubeconfig"] = sim.kubeconfig();
  const variables = { GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"), GANGWAY_DATA: data };
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data: null, insecure: false };
  const service = await startEmbedded({ ...options, simulate: false }, readConfig(data, variables), OWN_KINDS);
  const gangway = (words: readonly string[], world: World = {}): Promise<Ran> =>
    run(words, { address: service.address, files, ...world });
  return {
    sim,
    gangway,
    /** Runs a command that must succeed, and returns what it wrote. */
    ok: async (line: string): Promise<string> => {
      const ran = await gangway(line.split(" "));
      assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stderr}${ran.stdout}`);
      return ran.stdout;
    },
    close: async () => {
      await service.close();
      await sim.close();
      rmSync(data, { recursive: true, force: true });
    },
  };
}
