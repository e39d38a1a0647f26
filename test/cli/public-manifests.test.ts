/**
 * Manifests in the manner of public ones, as a stranger submits them: with what each submission prints, and with the
 * commands that it tells the stranger to run. `GANGWAY_RECORD=transcripts` writes the transcripts again.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import type { SimNode } from "../../src/adapters/simcluster/sim-cluster.ts";
import { clientOf, create, until } from "../cluster/harness.ts";
import { assertRecorded } from "../support/recorded-text.ts";
import { startLab } from "./lab-service.ts";

const FOLDER = new URL("public-manifests/", import.meta.url);
const FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3";
/** A manifest of an API that Gangway does not serve: its refusal names what it serves. */
const REFUSED = ["21-mpi-v2.yaml"];
/** How often the stranger submits a manifest at most. */
const TRIES_MAX = 6;

/** Room for all manifests at once: nodes like those that they ask for. */
const NODES: readonly SimNode[] = [
  ...Array.from({ length: 18 }, (_, at) => ({
    name: `p5-${at}`,
    labels: {
      "node.kubernetes.io/instance-type": "p5.48xlarge",
      "karpenter.sh/capacity-type": "spot",
      "topology.kubernetes.io/zone": "us-east-1a",
      "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
      "nvidia.com/gpu.count": "8",
    },
    taints: [{ key: "nvidia.com/gpu", value: "true", effect: "NoSchedule" }],
    allocatable: {
      cpu: "192",
      memory: "2Ti",
      "ephemeral-storage": "500Gi",
      "hugepages-2Mi": "20Gi",
      "nvidia.com/gpu": "8",
      "vpc.amazonaws.com/efa": "32",
      "rdma/rdma_shared_device_a": "8",
    },
  })),
  { name: "cpu-0", labels: { "node-role": "cpu" }, allocatable: { cpu: "64", memory: "256Gi" } },
];

/** The command or the flag by which an answer tells how a refused manifest is accepted. */
const COMMAND = /An admin (?:allows|makes) it with: gangway (.+)$/m;
const FLAG = /; (--[-a-z]+) skips/;

suite("manifests in the manner of public ones", () => {
  const names = readdirSync(FOLDER).filter((name) => /\.(yaml|json)$/.test(name));
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(new URL(name, FOLDER), "utf8")]));
  let lab: Awaited<ReturnType<typeof startLab>>;
  const ok = (line: string) => lab.ok(line);

  before(async () => {
    lab = await startLab(NODES, files);
    // What the stranger applies with kubectl: documents that `submit` skips.
    const client = clientOf(lab.sim.kubeconfig());
    await client.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "team-10" } } });
    await create(client, "serviceaccounts", { metadata: { name: "trainer" } }, "team-10");
    await client.close();
    await ok(`cluster add lab --kubeconfig lab.kubeconfig --flavor ${FLAVOR}`);
    await ok("queue update default --quota gpu/h100=nvidia.com/gpu:144");
  });
  after(() => lab.close());

  /**
   * Submits a manifest, and carries out the first advice of each refusal, until the manifest is accepted or an answer
   * has no advice. Returns all commands with what they printed.
   */
  async function submitAsStranger(name: string): Promise<{ readonly said: string; readonly accepted: boolean }> {
    const said: string[] = [];
    const say = async (words: readonly string[]) => {
      const { exitCode, stdout, stderr } = await lab.gangway(words);
      const shown = `${stderr}${stdout}`.replace(/(pytorchjob\/sample-pytorchjob-)[a-z0-9]+/, "$1…");
      said.push(`$ gangway ${words.join(" ")}\n${shown}${exitCode === 0 ? "" : `exits with ${exitCode}\n`}`);
      return { exitCode, stderr };
    };
    // Manifests without a namespace get one each, so that none profits from what another was allowed.
    const own = /"?namespace"?:/.test(files[name] ?? "") ? [] : ["-n", `team-${name.slice(0, 2)}`];
    const flags: string[] = [];
    for (let tried = 0; tried < TRIES_MAX; tried += 1) {
      const { exitCode, stderr } = await say(["submit", name, ...own, ...flags]);
      if (exitCode === 0) return { said: said.join(""), accepted: true };
      const flag = FLAG.exec(stderr)?.[1];
      const command = COMMAND.exec(stderr)?.[1];
      if (flag !== undefined) flags.push(flag);
      else if (command === undefined) break;
      else assert.equal((await say(command.split(" "))).exitCode, 0, `the advice works: gangway ${command}`);
    }
    return { said: said.join(""), accepted: false };
  }

  for (const name of names) {
    test(`${name}: what a stranger sees until it is ${REFUSED.includes(name) ? "refused" : "accepted"}`, async () => {
      const { said, accepted } = await submitAsStranger(name);
      assertRecorded(new URL(`${name.replace(/\.\w+$/, "")}.txt`, FOLDER), said);
      assert.equal(accepted, !REFUSED.includes(name), said);
    });
  }

  test("each that was accepted runs to its end on a cluster that has what it asks for", async () => {
    const rows = async () => {
      const columns = "custom-columns=N:.metadata.name,P:.status.phase,C:.status.admission.cluster";
      const [, ...lines] = (await ok(`list -A -o ${columns}`)).trim().split("\n");
      return lines.map((line) => line.split(/ +/));
    };
    const hasEnded = ([, phase = ""]: readonly string[]) => /SUCCEEDED|FAILED|CANCELLED/.test(phase);
    await until(async () => (await rows()).every(hasEnded), "all have ended", 120_000).catch(() => undefined);
    const shown = await rows();
    assert.equal(shown.length, names.length - REFUSED.length);
    const wrong = shown.filter(([, phase, cluster]) => phase !== "JOB_PHASE_SUCCEEDED" || cluster !== "lab");
    assert.deepEqual(wrong, [], await ok("list -A"));
  });
});
