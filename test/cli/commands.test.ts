import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import type { MigrationResult, UpOptions } from "../../src/cli/shell/deps.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

/** A job on nodes with EFA, as their vendors' examples write it. */
const EFA = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: efa}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          hostNetwork: true
          volumes: [{name: shm, hostPath: {path: /dev/shm}}]
          containers:
            - name: pytorch
              image: pytorch/pytorch:2.1
              securityContext: {capabilities: {add: [IPC_LOCK]}}
              volumeMounts: [{name: shm, mountPath: /dev/shm}]
`;
const MANIFESTS = {
  "job.yaml": pytorchManifest("mnist"),
  "changed.yaml": pytorchManifest("mnist").replace("replicas: 2", "replicas: 3"),
  "typo.yaml": pytorchManifest("typo").replace("image:", "imagePullPolcy: Always, image:"),
  "wrong.yaml": pytorchManifest("Wrong_Name", "  runPolicy: {schedulingPolicy: {queue: nowhere}}"),
  "efa.yaml": EFA,
  "unversioned.yaml": "kind: PyTorchJob\nmetadata: {name: a}",
  "mx.yaml": "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: a}\nspec: {}",
  "empty.yaml": "# nothing\n",
  "jobs/b.yml": pytorchManifest("b"),
  "jobs/a.yaml": pytorchManifest("a"),
  "jobs/notes.txt": "not a manifest",
  "twice/a.yaml": pytorchManifest("a"),
  "twice/b.yaml": `${pytorchManifest("c")}---\n${pytorchManifest("a")}`,
};

const POLICY_FLAGS = [
  "--preempt-within-queue lower-priority --reclaim-within-tree any",
  "--borrow-within lower-priority --borrow-within-max-priority -5",
  "--when-can-borrow try-next --when-can-preempt try-next --flavor-preference borrowing-over-preemption",
  "--min-runtime-preempt 90s --min-runtime-reclaim 1h --reserve-after never",
].join(" ");

async function served(t: TestContext) {
  const fixture = await startFixture(t);
  fixture.store.removesDeleted = true;
  const world: World = { address: fixture.api.address, files: MANIFESTS };
  const gangway = (line: string, more: World = {}) => run(line.split(" "), { ...world, ...more });
  return { ...fixture, gangway };
}

/** One command line and its expected result. The steps of a story share one service. */
type Step = { run: string; exit: number; out?: RegExp; err?: RegExp };

async function play(t: TestContext, steps: readonly Step[]): Promise<Awaited<ReturnType<typeof served>>> {
  const fixture = await served(t);
  for (const step of steps) {
    const ran = await fixture.gangway(step.run);
    check(step, ran);
  }
  return fixture;
}

function check(step: Step, ran: Ran): void {
  const shown = `$ gangway ${step.run}\n${ran.stdout}${ran.stderr}[${ran.exitCode}]`;
  assert.equal(ran.exitCode, step.exit, shown);
  if (step.out === undefined) assert.equal(ran.stdout, "", shown);
  else assert.match(ran.stdout, step.out, shown);
  if (step.err === undefined) assert.equal(ran.stderr, "", shown);
  else assert.match(ran.stderr, step.err, shown);
}

const stories: Record<string, readonly Step[]> = {
  "submitting again is unchanged, a request id replays, another spec is refused": [
    { run: "submit -f job.yaml --dry-run", exit: 0, out: /^pytorchjob\/mnist valid\n$/ },
    { run: "get mnist", exit: 3, err: /^error: not found: job default\/mnist does not exist\n$/ },
    { run: "submit -f job.yaml --request-id one", exit: 0, out: /^pytorchjob\/mnist created\n$/ },
    { run: "submit -f job.yaml --request-id one", exit: 0, out: /^pytorchjob\/mnist replayed\n$/ },
    { run: "submit -f job.yaml", exit: 0, out: /^pytorchjob\/mnist unchanged\n$/ },
    { run: "submit -f changed.yaml", exit: 3, err: /^changed.yaml, document 1:\nerror: already exists: / },
  ],
  "a job is suspended, resumed, scaled and relabelled, and an unknown replica type is refused": [
    { run: "submit -f job.yaml", exit: 0, out: /created/ },
    { run: "suspend tfjob/mnist", exit: 3, err: /^error: there is no tfjob\/mnist: mnist is a PyTorchJob\n$/ },
    { run: "suspend pytorchjob/mnist", exit: 0, out: /^pytorchjob\/mnist suspended\n$/ },
    { run: "suspend mnist", exit: 0, out: /^pytorchjob\/mnist suspended\n$/ },
    { run: "resume mnist", exit: 0, out: /^pytorchjob\/mnist resumed\n$/ },
    { run: "scale mnist Worker=5", exit: 0, out: /^pytorchjob\/mnist scaled\n$/ },
    { run: "scale mnist Worker=five", exit: 2, err: /TYPE=NUMBER/ },
    { run: "scale mnist PS=1", exit: 3, err: /job\.spec\.replica_specs\[PS\]: is not a replica type of this job/ },
    { run: "update mnist --priority 7 --label team=nlp", exit: 0, out: /^pytorchjob\/mnist updated\n$/ },
    { run: "update mnist --label team- --label tier=gold", exit: 0, out: /updated/ },
    { run: "update mnist", exit: 2, err: /nothing to change/ },
    { run: "update mnist --label =", exit: 2, err: /KEY=VALUE/ },
    { run: "update mnist --priority high", exit: 2, err: /whole number/ },
    {
      run: "get mnist -o yaml",
      exit: 0,
      out: /labels:\n +tier: gold\n/,
    },
    { run: "scale nobody Worker=1", exit: 3, err: /not found/ },
  ],
  "the manifests of a folder are submitted in the order of their names": [
    { run: "submit -f jobs/", exit: 0, out: /^pytorchjob\/a created\npytorchjob\/b created\n$/ },
    { run: "list -o name --order-by name", exit: 0, out: /^pytorchjob\/a\npytorchjob\/b\n$/ },
  ],
  "a refused manifest does not stop the others": [
    { run: "submit -f job.yaml", exit: 0, out: /^pytorchjob\/mnist created\n$/ },
    {
      run: "submit -f jobs/ -f changed.yaml",
      exit: 3,
      out: /^pytorchjob\/a created\npytorchjob\/b created\n$/,
      err: /^changed.yaml, document 1:\nerror: already exists: job default\/mnist exists and differs/,
    },
  ],
  "nothing is submitted if one manifest is wrong": [
    {
      run: "submit -f job.yaml -f mx.yaml",
      exit: 3,
      err: /^error: mx.yaml, document 1: kind MXJob is not served: .*\nnothing was submitted\n$/,
    },
    {
      run: "submit -f job.yaml -f unversioned.yaml",
      exit: 3,
      err: /^error: unversioned.yaml, document 1: apiVersion: is required: kubeflow.org\/v1, batch\/v1, .* or .*\n/,
    },
    {
      run: "submit -f twice",
      exit: 3,
      err: /twice\/b.yaml, document 2: metadata.name: a is also the name of twice\/a.yaml, document 1/,
    },
    { run: "list", exit: 0, err: /^no jobs\n$/ },
  ],
  "a refusal lists each wrong field on its own line": [
    {
      run: "submit -f wrong.yaml",
      exit: 3,
      err: /error: invalid argument\n( {2}(spec|metadata)\.[^\n]+: [^\n]+\n){2,}$/,
    },
  ],
  "an unknown field is a warning, and an error with --strict": [
    {
      run: "submit -f typo.yaml --dry-run",
      exit: 0,
      out: /valid/,
      err: /^warning: typo.yaml, document 1: .*did you mean imagePullPolicy/,
    },
    { run: "submit -f typo.yaml --strict", exit: 3, err: /did you mean imagePullPolicy/ },
  ],
  "list selects jobs by their properties": [
    { run: "submit -f job.yaml -n nlp", exit: 0, out: /created/ },
    { run: "list", exit: 0, err: /no jobs/ },
    {
      run: "list -n nlp --phase waiting --kind pytorchjob --queue default",
      exit: 0,
      out: /^NAME .*\nmnist +PyTorchJob +default +0 +WAITING +- +0\/3 /,
    },
    { run: "list -A -l a=b", exit: 0, err: /no jobs/ },
    { run: "list -A", exit: 0, out: /^NAMESPACE .*\nnlp +mnist / },
    {
      run: "get pytorchjob/mnist -n nlp -o json",
      exit: 0,
      out: /^\{\n {2}"apiVersion": "gangway.dev\/v1",\n {2}"kind": "PyTorchJob",\n {2}"metadata": \{\n {4}"name": "mn/,
    },
    { run: "explain mnist -n nlp", exit: 0, out: /waits[\s\S]*Phase: +WAITING/ },
    { run: "events mnist -n nlp", exit: 0, err: /no events/ },
    { run: "cancel mnist -n nlp --reason enough", exit: 0, out: /^pytorchjob\/mnist cancelled\n$/ },
    { run: "cancel mnist -n nlp", exit: 0, out: /cancelled/ },
    { run: "delete mnist -n nlp", exit: 0, out: /^pytorchjob\/mnist deleted\n$/ },
  ],
  "a queue has a policy, of which an update changes what its options name": [
    { run: "queue create all --fair-sharing on --weight 2", exit: 0, out: /created/ },
    {
      run: "queue get all -o wide",
      exit: 0,
      out: / WEIGHT +POLICY\n.* 2 +--fair-sharing final-share,initial-share\n$/,
    },
    { run: "queue update all --fair-sharing initial-share", exit: 0, out: /updated/ },
    { run: "queue list -o wide", exit: 0, out: / 2 +--fair-sharing initial-share\n/ },
    { run: "queue update all --fair-sharing off --weight 0.5", exit: 0, out: /updated/ },
    { run: "queue get all -o jsonpath={.weight}{.fair_sharing}", exit: 0, out: /^0.5\n?$/ },
    { run: "queue create a --parent all --fair-sharing on", exit: 3, err: /queue.fair_sharing: must not be set/ },
    {
      run: `queue create a --parent all ${POLICY_FLAGS}`,
      exit: 0,
      out: /created/,
    },
    { run: "queue update --help", exit: 0, out: /--weight <number> +the queue's weight among its siblings/ },
    { run: "queue stop a", exit: 0, out: /stopped/ },
    { run: "queue update a --strategy strict", exit: 0, out: /updated/ },
    {
      run: "queue get a -o wide",
      exit: 0,
      out: /a +strict +hold .* 1 +--preempt-within-queue lower-priority, --reclaim-within-tree any, --borrow-within /,
    },
    {
      run: "queue get a -o wide",
      exit: 0,
      out: /--borrow-within-max-priority -5, --when-can-borrow try-next, --flavor-preference borrowing-over-/,
    },
    {
      run: "queue get a -o wide",
      exit: 0,
      out: /borrowing-over-preemption, --min-runtime-preempt 1m30s, --min-runtime-reclaim 1h, --reserve-after never\n$/,
    },
    {
      run: "queue update a --borrow-within never --min-runtime-preempt inherit --reserve-after 10m",
      exit: 0,
      out: /updated/,
    },
    { run: "queue update a --flavor-preference none --when-can-borrow stop", exit: 0, out: /updated/ },
    {
      run: "queue get a -o wide",
      exit: 0,
      out: / 1 +--preempt-within-queue lower-priority, --reclaim-within-tree any, --min-runtime-reclaim 1h\n$/,
    },
    {
      run: "queue update a --borrow-within-max-priority 3",
      exit: 3,
      err: /max_priority: must not be set unless policy/,
    },
    { run: "queue update a --weight -1", exit: 2, err: /--weight.* must be 0, or a number from 0.000001 to 1000000/ },
    { run: "queue update all --fair-sharing maybe", exit: 2, err: /must be on, off, or a list of final-share and/ },
    { run: "queue update a --reclaim-within-tree all", exit: 2, err: /never, lower-priority, any/ },
    { run: "queue update a --ageing-step 5", exit: 3, err: /ageing.interval: value is required/ },
    { run: "queue update a --ageing 10m --ageing-step 5 --ageing-limit 50", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--ageing 10m, --ageing-step 5, --ageing-limit 50\n$/ },
    { run: "queue update a --ageing-limit 0", exit: 3, err: /ageing.limit: .*greater than or equal to 1/ },
    { run: "queue update a --ageing off", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--min-runtime-reclaim 1h\n$/ },
    { run: "queue update a --max-preemptions 3", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--max-preemptions 3\n$/ },
    { run: "queue update a --max-preemptions -1", exit: 3, err: /max_preemptions: .*greater than or equal to 0/ },
    { run: "queue update a --max-preemptions inherit", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--min-runtime-reclaim 1h\n$/ },
    { run: "queue update a --preemptions-per-hour 5", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--preemptions-per-hour 5\n$/ },
    { run: "queue update a --preemptions-per-hour -2", exit: 3, err: /preemptions_per_hour: .*than or equal to 0/ },
    { run: "queue update a --preemptions-per-hour any", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--min-runtime-reclaim 1h\n$/ },
    {
      run: "queue update a --min-runtime-preempt 500ms --min-runtime-reclaim 0s --reserve-after 1ms",
      exit: 0,
      out: /u/,
    },
    {
      run: "queue get a -o wide",
      exit: 0,
      out: /--min-runtime-preempt 500ms, --min-runtime-reclaim 0s, --reserve-after 1ms\n$/,
    },
    { run: "queue update a --reserve-after 0s", exit: 0, out: /updated/ },
    { run: "queue get a -o wide", exit: 0, out: /--reserve-after never\n$/ },
    { run: "queue update --help", exit: 0, out: /never or\s+0s:\s+no\s+reservations/ },
    { run: "queue update --help", exit: 0, out: /e\.g\. 90s, 10m or\s+1h30m; 0s:\s+no\s+protection/ },
    { run: "queue update a --ageing off --ageing-limit 5", exit: 2, err: /--ageing off cannot have .*--ageing-limit/ },
    {
      run: "queue update a --preemptions-per-hour few",
      exit: 2,
      err: /must be "any" or a whole number from 0 to 2147/,
    },
    { run: "queue update a --max-preemptions 9e9", exit: 2, err: /must be "inherit" or a whole number from 0 to 2147/ },
    { run: "queue update a --borrow-within-max-priority x", exit: 2, err: /must be "none" or a whole number between/ },
    { run: "queue update all --fair-sharing ,", exit: 2, err: /must be on, off, or a list of final-share and/ },
    { run: "queue update a --ageing often", exit: 2, err: /must be "off" or a duration/ },
    { run: "queue update a --min-runtime-reclaim 5", exit: 2, err: /must be "inherit" or a duration/ },
  ],
  "a priority class is created, given to jobs, changed and deleted": [
    {
      run: "priority-class create high --value 100 --description urgent",
      exit: 0,
      out: /^priority-class\/high created\n$/,
    },
    { run: "priority-class create patient --value 50 --preemption never --default yes", exit: 0, out: /created/ },
    {
      run: "priority-class list",
      exit: 0,
      out: /DESCRIPTION\nhigh +100 +lower-priority +- +\S+ +urgent\npatient +50 +never +yes +\S+ +-\n$/,
    },
    { run: "priority-class create high --value 1", exit: 3, err: /already exists/ },
    { run: "priority-class create more", exit: 2, err: /--value/ },
    { run: "priority-class create more --value 1 --default yes", exit: 3, err: /because priority class patient is/ },
    {
      run: "submit job.yaml --priority-class higj",
      exit: 3,
      err: /priority class higj does not exist; did you mean high/,
    },
    { run: "submit job.yaml --priority-class high", exit: 0, out: /created/ },
    { run: "get mnist -o jsonpath={.spec.priority}/{.spec.priorityClassName}", exit: 0, out: /^100\/high\n?$/ },
    { run: "update mnist --priority-class patient", exit: 0, out: /updated/ },
    {
      run: "get mnist -o jsonpath={.spec.priority}/{.status.preemptionPolicy}",
      exit: 0,
      out: /^50\/(PREEMPTION_POLICY_)?NEVER\n?$/i,
    },
    { run: "update mnist --priority 3", exit: 0, out: /updated/ },
    { run: "get mnist -o jsonpath={.spec.priority}/{.spec.priorityClassName}", exit: 0, out: /^3\/?\n?$/ },
    { run: "priority-class update patient", exit: 2, err: /give --description or --default/ },
    { run: "priority-class update patient --default no", exit: 0, out: /updated/ },
    { run: "priority-class get patient", exit: 0, out: /patient +50 +never +- / },
    { run: "priority-class delete patient", exit: 0, out: /^priority-class\/patient deleted\n$/ },
    { run: "priority-class get patient", exit: 3, err: /not found/ },
  ],
  "a queue is created, changed in part, and deleted": [
    {
      run: "queue create nlp --quota gpu/h100=nvidia.com/gpu:8 --strategy strict",
      exit: 0,
      out: /^queue\/nlp created\n$/,
    },
    { run: "queue create nlp", exit: 3, err: /error: already exists/ },
    { run: "queue update nlp --strategy best-effort", exit: 0, out: /updated/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +- +0 +0 +gpu\/h100 0\/8/ },
    { run: "queue update nlp", exit: 2, err: /give --quota, --parent, --strategy or another option/ },
    { run: "queue update nlp -n default", exit: 2, err: /give --quota, --parent, --strategy or another option/ },
    { run: "queue update nlp --max-running-jobs 3", exit: 0, out: /updated/ },
    { run: "queue stop nlp", exit: 0, out: /stopped/ },
    { run: "queue resume nlp", exit: 0, out: /resumed/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +- +0 +0\/3 +gpu\/h100 0\/8/ },
    { run: "queue update nlp --max-waiting-jobs 5", exit: 0, out: /updated/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +- +0\/5 +0\/3 +gpu\/h100 0\/8/ },
    {
      run: "queue update nlp --max-waiting-jobs few",
      exit: 2,
      err: /--max-waiting-jobs must be a number from 0 to 2147483647/,
    },
    { run: "queue update nlp --max-waiting-jobs 0", exit: 0, out: /updated/ },
    { run: "queue update nlp --max-running-jobs few", exit: 2, err: /a number from 0 to 2147483647, not few/ },
    { run: "queue update nlp --max-running-jobs 2147483648", exit: 2, err: /from 0 to 2147483647, not 2147483648/ },
    { run: "queue update nlp --max-running-jobs 2147483647", exit: 0, out: /updated/ },
    { run: "queue update nlp --max-running-jobs 0", exit: 0, out: /updated/ },
    { run: "queue update nlp --quota 8", exit: 2, err: /FLAVOR=RESOURCE:COUNT/ },
    {
      run: "queue update nlp --quota a=b:99999999999999999999",
      exit: 2,
      err: /from 0 to 9007199254740991, not 99999999999999999999 in a=b:99999999999999999999\n/,
    },
    {
      run: "queue update nlp --quota a=b:-1",
      exit: 2,
      err: /whole numbers from 0 to 9007199254740991, not -1 in a=b:-1/,
    },
    { run: "queue update nlp --quota a=b:1,lend=-1", exit: 2, err: /from 0 to 9007199254740991, not -1 in / },
    { run: "queue update nlp --quota a=b:1,steal=2", exit: 2, err: /\[,borrow=COUNT\]\[,lend=COUNT\]/ },
    { run: "queue create dev --parent nlp --quota gpu/h100=nvidia.com/gpu:4,borrow=2,lend=0", exit: 0, out: /created/ },
    { run: "queue create dev2 --parent nowhere", exit: 3, err: /queue.parent: queue nowhere does not exist/ },
    { run: "queue update dev --strategy strict", exit: 0, out: /updated/ },
    { run: "queue get dev", exit: 0, out: /dev +strict +- +0 +0 +gpu\/h100 0\/4 \(borrows 2, lends 0\) +nlp/ },
    { run: "queue list", exit: 0, out: /nlp .*\n└ dev / },
    { run: "queue stop nlp", exit: 0, out: /^queue\/nlp stopped\n$/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +hold +0/ },
    { run: "queue get dev", exit: 0, out: /dev +strict +by nlp +0/ },
    { run: "queue resume dev", exit: 0, out: /^queue\/dev resumed, but it is below queue nlp, which is stopped\n$/ },
    { run: "queue stop nlp --drain", exit: 0, out: /stopped/ },
    { run: "queue update nlp --strategy best-effort", exit: 0, out: /updated/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +drain +0/ },
    { run: "queue resume nlp", exit: 0, out: /^queue\/nlp resumed\n$/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +- +0 +0/ },
    { run: "queue freeze nlp", exit: 0, out: /^queue\/nlp frozen\n$/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +frozen +0/ },
    { run: "queue stop nlp", exit: 0, out: /^queue\/nlp stopped\n$/ },
    { run: "queue get nlp", exit: 0, out: /nlp +best-effort +frozen, hold +0/ },
    { run: "queue unfreeze nlp", exit: 0, out: /^queue\/nlp unfrozen, but it is stopped\n$/ },
    { run: "queue freeze nlp", exit: 0, out: /frozen/ },
    {
      run: "queue stop nlp --drain",
      exit: 0,
      out: /^queue\/nlp stopped; it drains once the freeze of queue nlp has ended\n$/,
    },
    { run: "queue list", exit: 0, out: /nlp +best-effort +frozen, drain +0/ },
    {
      run: "queue unfreeze nlp",
      exit: 0,
      out: /^queue\/nlp unfrozen, but it is stopped with --drain: its admissions are undone now\n$/,
    },
    { run: "queue freeze dev", exit: 0, out: /frozen/ },
    { run: "queue get dev", exit: 0, out: /dev +strict +frozen, by nlp +0/ },
    {
      run: "queue unfreeze dev",
      exit: 0,
      out: /^queue\/dev unfrozen, but it is below queue nlp, which is stopped\n$/,
    },
    { run: "queue resume nlp", exit: 0, out: /resumed/ },
    { run: "queue stop nowhere", exit: 3, err: /not found/ },
    { run: "queue delete nlp", exit: 3, err: /dev, which is below it/ },
    { run: "queue update dev --parent= --quota gpu/h100=nvidia.com/gpu:4", exit: 0, out: /updated/ },
    { run: "queue delete nlp", exit: 0, out: /deleted/ },
    { run: "queue get nlp", exit: 3, err: /not found/ },
  ],
  "the pod policy of a namespace says what a job may do, and a refusal says how to allow it": [
    { run: "submit -f efa.yaml", exit: 3, err: /spec.hostNetwork: uses the network of the node: .*hostNamespaces/ },
    { run: "submit -f efa.yaml", exit: 3, err: /gangway namespace update default --allow host-network\n/ },
    { run: "submit -f efa.yaml", exit: 3, err: /gangway namespace update default --allow host-path=\/dev\/shm\n/ },
    { run: "namespace update default --allow host-network,host-path=/dev/shm,/data:ro", exit: 0, out: /updated/ },
    { run: "submit -f efa.yaml", exit: 3, err: /--allow capability=IPC_LOCK\n/ },
    { run: "namespace update default --allow capability=CAP_IPC_LOCK", exit: 0, out: /updated/ },
    { run: "submit -f efa.yaml --dry-run", exit: 0, out: /valid/ },
    { run: "namespace get default", exit: 0, out: /default +default +default +baseline \(4 allowed\)/ },
    { run: "namespace get default -o yaml", exit: 0, out: /allow:\n +- host-network\n +- host-path=\/dev\/shm\n/ },
    { run: "namespace update default --disallow host-path=/dev/shm/", exit: 0, out: /updated/ },
    { run: "submit -f efa.yaml", exit: 3, err: /--allow host-path=\/dev\/shm\n/ },
    { run: "namespace update default --failure-logs never", exit: 2, err: /It must be on or off\./ },
    { run: "namespace update default --failure-logs off", exit: 0, out: /updated/ },
    { run: "namespace update default --pod-security privileged", exit: 0, out: /updated/ },
    { run: "submit -f efa.yaml --dry-run", exit: 0, out: /valid/ },
    { run: "namespace update default --only image=ghcr.io/acme/*,busybox", exit: 0, out: /updated/ },
    { run: "submit -f efa.yaml", exit: 3, err: /only ghcr.io\/acme\/\*, busybox \(limit image\)/ },
    { run: "namespace list", exit: 0, out: /privileged \(3 allowed, 1 limited\)/ },
    { run: "namespace update default --only image=any --pod-security default", exit: 0, out: /updated/ },
    { run: "namespace get default", exit: 0, out: /baseline \(3 allowed\)/ },
    {
      run: "namespace update default --allow host-path=../x",
      exit: 3,
      err: /namespace.pod_policy.allow\[3\]: is "host-p/,
    },
    { run: "namespace update default --allow /x", exit: 2, err: /"\/x" must be one of host-network/ },
    { run: "namespace update default --only color=red", exit: 2, err: /kinds are image, service-account/ },
    { run: "namespace update default --pod-security strict", exit: 2, err: /privileged, baseline, restricted/ },
    { run: "namespace create kube-system", exit: 3, err: /namespace.name: is reserved/ },
    { run: "namespace create gangway", exit: 3, err: /namespace.name: is reserved/ },
    { run: "namespace create open --pod-security privileged", exit: 0, out: /created/ },
    { run: "namespace get open -o yaml", exit: 0, out: /podPolicy:\n +level: POD_SECURITY_LEVEL_PRIVILEGED/ },
    {
      run: "submit -n kube-system -f job.yaml",
      exit: 3,
      err: /metadata.namespace: is kube-system: no job may run there/,
    },
  ],
  "an update of a namespace keeps omitted settings": [
    { run: "namespace create nlp --project text", exit: 0, out: /created/ },
    { run: "limits list", exit: 0, err: /no limits/ },
    { run: "limits set namespace/nlp", exit: 2, err: /there is nothing to set; give --max-waiting-jobs, --max-run/ },
    { run: "limits set nlp --max-pods 3", exit: 2, err: /must be namespace\/NAME or project\/NAME, not nlp/ },
    { run: "limits set namespace/nlp --max-pods few", exit: 2, err: /--max-pods must be a number from 0 up/ },
    { run: "limits set namespace/nowhere --max-pods 3", exit: 3, err: /namespace nowhere does not exist/ },
    {
      run: "limits set namespace/nlp --max-pods 3 --max-template-bytes 4096",
      exit: 0,
      out: /limits of namespace\/nlp set/,
    },
    { run: "limits set namespace/nlp --max-running-jobs 2 --max-robot-tokens 7", exit: 0, out: /set/ },
    { run: "limits list", exit: 0, out: /namespace\/nlp +0 +0\/2 +0\/3 +0\/4096 +0\/7/ },
    { run: "limits set project/text --max-waiting-jobs 1", exit: 0, out: /set/ },
    { run: "limits list -o name", exit: 0, out: /^namespace\/nlp\nproject\/text\n$/ },
    { run: "queue create research", exit: 0, out: /created/ },
    { run: "namespace update nlp --default-queue research", exit: 0, out: /updated/ },
    { run: "namespace get nlp -o yaml", exit: 0, out: /project: text\ndefaultQueue: research/ },
    { run: "namespace delete nlp", exit: 0, out: /deleted/ },
    { run: "namespace list -o name", exit: 0, out: /^namespace\/default\n$/ },
  ],
  "a wrong command line is a usage error": [
    { run: "sumbit", exit: 2, err: /unknown command 'sumbit'/ },
    { run: "submit", exit: 2, err: /give the manifests: files, folders, or - for stdin/ },
    { run: "submit -f nowhere.yaml", exit: 2, err: /nowhere.yaml does not exist/ },
    { run: "submit -f empty.yaml", exit: 2, err: /no manifest in empty.yaml/ },
    { run: "submit -f job.yaml --wait --timeout 5", exit: 2, err: /a duration with its unit/ },
    { run: "submit -f job.yaml --wait --dry-run", exit: 2, err: /nothing to wait for/ },
    { run: "submit -f job.yaml --timeout 5s", exit: 2, err: /--timeout needs --wait/ },
    { run: "delete mnist --timeout 5s --wait=false", exit: 2, err: /--timeout and --wait=false cannot be combined/ },
    { run: "get a/b/c", exit: 2, err: /a job must be NAME or KIND\/NAME, not a\/b\/c/ },
    { run: "cancel pytorchjob/", exit: 2, err: /a job must be NAME or KIND\/NAME, not pytorchjob\// },
    { run: "cluster add east --kubeconfig nowhere.yaml", exit: 2, err: /nowhere.yaml does not exist/ },
    { run: "list --phase sleeping", exit: 2, err: /no phase sleeping/ },
    {
      run: "list -o xml",
      exit: 2,
      err: /Allowed choices are table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=/,
    },
    { run: "--address nowhere list", exit: 2, err: /--address must be HOST:PORT/ },
    { run: "--address 127.0.0.1:65536 list", exit: 2, err: /--address must be HOST:PORT/ },
    { run: "up --listen 127.0.0.1:65536", exit: 2, err: /--listen must be HOST:PORT/ },
    { run: "serve --listen 127.0.0.1:99999", exit: 2, err: /--listen must be HOST:PORT, not 127\.0\.0\.1:99999/ },
    { run: "up --exit --no-examples", exit: 2, err: /--exit waits for the examples/ },
  ],
  "kinds are listed, and an example can be submitted": [
    { run: "kinds", exit: 0, out: /PyTorchJob +kubeflow.org\/v1 +Master \(at most 1\), Worker/ },
    { run: "kinds --example tfjob", exit: 0, out: /^apiVersion: kubeflow.org\/v1\nkind: TFJob/ },
  ],
  "an unknown cluster is not found": [
    { run: "cluster list", exit: 0, err: /no clusters/ },
    { run: "cluster capacity h100-east", exit: 3, err: /not found/ },
    { run: "cluster cordon h100-east", exit: 3, err: /not found/ },
  ],
};

for (const [name, steps] of Object.entries(stories)) {
  test(name, async (t) => {
    await play(t, steps);
  });
}

test("a manifest can come from stdin, and --address overrides the environment", async (t) => {
  const { api } = await served(t);
  const world = { stdin: pytorchManifest("piped"), address: "127.0.0.1:1" };
  const ran = await run(["submit", "-f", "-", "--address", api.address, "-o", "name"], world);
  assert.deepEqual(ran, { exitCode: 0, stdout: "pytorchjob/piped\n", stderr: "" });
});

test("an unavailable service is an error with the address that was tried", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  server.close();
  for (const command of ["list", "watch"]) {
    const ran = await run([command], { address: `127.0.0.1:${address.port}` });
    assert.equal(ran.exitCode, 4);
    assert.match(ran.stderr, new RegExp(`^error: unavailable: .*\n.*127.0.0.1:${address.port}.*gangway up`));
  }
});

test("a cluster is cordoned and uncordoned", async (t) => {
  const { store, gangway } = await served(t);
  const capacity = { labels: {}, flavors: [], cordoned: false, simulated: true, reachable: true, uid: null };
  const times = { observedMs: null, version: 1, createTimeMs: 1000, capacity: null, gangScheduler: "none" } as const;
  store.clusters.set("h100-east", { name: "h100-east", ...capacity, ...times });
  assert.equal((await gangway("cluster cordon h100-east")).stdout, "cluster/h100-east cordoned\n");
  assert.match((await gangway("cluster list")).stdout, /h100-east +cordoned, simulated/);
  assert.equal((await gangway("cluster uncordon h100-east")).stdout, "cluster/h100-east uncordoned\n");
});

test("cluster list says for how long a cluster has not answered, and whether waiting helps", async (t) => {
  const { store, gangway } = await served(t);
  const record = { labels: {}, flavors: [], cordoned: false, simulated: false, reachable: false, uid: null } as const;
  const more = { observedMs: null, version: 1, createTimeMs: 1_000, capacity: null, gangScheduler: "none" } as const;
  const sinceMs = Date.now() - 5 * 60_000;
  for (const [name, unusable] of [
    ["east", null],
    ["west", "its token was revoked"],
  ] as const)
    store.clusters.set(name, { name, ...record, ...more, silence: { sinceMs, unusable } });
  const { stdout } = await gangway("cluster list");
  assert.match(stdout, /^east +unreachable for 5m /m);
  assert.match(stdout, /^west +unusable for 5m /m);
  const west = (await gangway("cluster get west -o yaml")).stdout;
  assert.match(west, /problem: its token was revoked/);
  assert.match(west, /state: CLUSTER_STATE_UNUSABLE|state: UNUSABLE/);
  assert.match(west, /stateSince: /);
});

test("cluster update changes the gang scheduler, and keeps omitted settings", async (t) => {
  const { store, gangway } = await served(t);
  const labels = { zone: "a" };
  const shown = {
    labels,
    flavors: [],
    cordoned: false,
    simulated: false,
    reachable: true,
    gangScheduler: "none",
  } as const;
  store.clusters.set("east", {
    name: "east",
    ...shown,
    observedMs: null,
    version: 1,
    createTimeMs: 1000,
    uid: null,
    capacity: null,
  });
  const changed = await gangway("cluster update east --gang-scheduler volcano");
  assert.equal(changed.stdout, "cluster/east updated\n");
  assert.deepEqual(
    [store.clusters.get("east")?.gangScheduler, store.clusters.get("east")?.labels],
    ["volcano", labels],
  );
  assert.equal((await gangway("cluster update east")).exitCode, 2);
  const levels = [
    { name: "block", label: "example.com/block" },
    { name: "host", label: "kubernetes.io/hostname" },
  ];
  await gangway("cluster update east --topology block=example.com/block,host=kubernetes.io/hostname");
  assert.deepEqual(store.clusters.get("east")?.topology, levels);
  await gangway("cluster update east --label zone=b --flavor gpu/a=a.com/gpu --flavor-topology gpu/a:rack=rack");
  assert.deepEqual(store.clusters.get("east")?.topology, levels, "another change keeps them");
  assert.deepEqual(store.clusters.get("east")?.flavors[0]?.topology, [{ name: "rack", label: "rack" }]);
  await gangway("cluster update east --gang-scheduler none");
  assert.deepEqual(store.clusters.get("east")?.flavors[0]?.topology, [{ name: "rack", label: "rack" }]);
  const wide = (await gangway("cluster list -o wide")).stdout;
  assert.match(
    wide,
    /LEVELS +LEVELS OF FLAVORS\n.* block=example.com\/block,host=kubernetes.io\/hostname +gpu\/a:rack=rack/,
  );
  assert.doesNotMatch((await gangway("cluster describe east")).stdout, /LEVELS/);
  assert.match((await gangway("cluster describe east -o yaml")).stdout, /topology:\n +levels:\n +- name: block/);
  await gangway("cluster update east --topology none --flavor-topology gpu/a:none");
  assert.deepEqual(store.clusters.get("east")?.topology, []);
  assert.deepEqual(store.clusters.get("east")?.flavors[0]?.topology, []);
  assert.equal((await gangway("cluster update east --gang-scheduler slurm")).exitCode, 2);
});

const migrations: Record<string, { outcome: MigrationResult; exit: number; out?: RegExp; err?: RegExp }> = {
  "the migrations that it ran": {
    outcome: { kind: "migrated", ran: ["0002_x"] },
    exit: 0,
    out: /^ran 0002_x\nthe schema is up to date now\n$/,
  },
  "that the schema was current": {
    outcome: { kind: "migrated", ran: [] },
    exit: 0,
    out: /^the schema was up to date\n$/,
  },
  "a refusal": { outcome: { kind: "refused", message: "too new" }, exit: 3, err: /^error: too new\n$/ },
  "an unavailable server": { outcome: { kind: "unavailable", message: "away" }, exit: 4, err: /^error: away\n$/ },
  "a missing setting": { outcome: { kind: "notConfigured" }, exit: 2, err: /DATABASE_URL is not set/ },
};
for (const [name, { outcome, exit, out, err }] of Object.entries(migrations)) {
  test(`migrate prints ${name}`, async () => {
    const asked: boolean[] = [];
    const migrate = async ({ offline }: { readonly offline: boolean }) => {
      asked.push(offline);
      return outcome;
    };
    const ran = await run(["migrate", "--offline"], { migrate });
    assert.equal(ran.exitCode, exit);
    assert.match(ran.stdout, out ?? /^$/);
    assert.match(ran.stderr, err ?? /^$/);
    assert.deepEqual(asked, [true]);
  });
}

test("up gets its options, and the command returns its exit status", async () => {
  const asked: UpOptions[] = [];
  const up = async (options: UpOptions) => asked.push(options) && 7;
  assert.equal((await run(["up"], { up })).exitCode, 7);
  await run(["up", "--no-examples", "--listen", "127.0.0.1:0", "--data", "/tmp/x", "--simulate"], { up });
  assert.deepEqual(asked, [
    { exit: false, examples: true, listen: null, data: null, insecure: false, simulate: false },
    { exit: false, examples: false, listen: "127.0.0.1:0", data: "/tmp/x", insecure: false, simulate: true },
  ]);
});

test("--version prints the version of this program", async () => {
  assert.deepEqual(await run(["--version"]), { exitCode: 0, stdout: "1.2.3\n", stderr: "" });
});

test("version prints the versions of this program and of the service", async (t) => {
  const { gangway, api } = await served(t);
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.deepEqual(await gangway("version"), {
    exitCode: 0,
    stdout: `client 1.2.3\nserver ${version} at ${api.address}\n`,
    stderr: "",
  });
  assert.deepEqual(JSON.parse((await gangway("version -o json")).stdout), { client: "1.2.3", server: version });
  assert.equal((await gangway("version -o jsonpath={.server}")).stdout, version);
  assert.equal((await run(["version", "--client"], { address: "127.0.0.1:1" })).stdout, "client 1.2.3\n");
  assert.equal((await run(["version"], { address: "127.0.0.1:1" })).exitCode, 4);
});

test("every command has help with examples", async () => {
  const top = await run(["--help"]);
  assert.equal(top.exitCode, 0);
  const commands = [...top.stdout.matchAll(/^ {2}([a-z]+)(?: |$)/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => !["help", "gangway"].includes(name));
  assert.ok(commands.length >= 14, commands.join());
  for (const command of commands) {
    const ran = await run([command, "--help"]);
    assert.equal(ran.exitCode, 0);
    assert.match(ran.stdout, /Examples:\n {2}\S/, command);
  }
});

test("a job that has ended cannot be cancelled, and the error is printed once", async (t) => {
  const { store, gangway } = await served(t);
  await gangway("submit -f job.yaml");
  const { job } = store.jobs.get("default/mnist") ?? assert.fail("no job mnist");
  store.put({ ...job, status: { ...job.status, phase: "SUCCEEDED", waiting: null } });
  const ran = await gangway("cancel mnist");
  assert.equal(ran.exitCode, 3);
  assert.match(ran.stderr, /^error: failed precondition: [^\n]+\n$/);
});

test("a job with a maximum run time and backfill can be submitted again as get prints it", async (t) => {
  const { gangway, store } = await served(t);
  await gangway("submit job.yaml --max-runtime 1h30m --backfill");
  const { stdout } = await gangway("get mnist -o yaml");
  const again = await gangway("submit -", { stdin: stdout.replace("name: mnist\n", "name: again\n") });
  assert.equal(again.exitCode, 0, again.stderr);
  const { maxRuntimeMs, backfill } = store.jobs.get("default/again")!.job.spec.runPolicy;
  assert.deepEqual([maxRuntimeMs, backfill], [5_400_000, true]);
  assert.match((await gangway("submit job.yaml --max-runtime 90")).stderr, /duration with its unit/);
  assert.match((await gangway("submit job.yaml --max-runtime 0s")).stderr, /--max-runtime: must be/);
});

test("a job may be preempted as often as --max-preemptions says, whatever its manifest says", async (t) => {
  const { gangway, store } = await served(t);
  const policyOf = (name: string) => store.jobs.get(`default/${name}`)!.job.spec.runPolicy.schedulingPolicy;
  assert.equal((await gangway("submit job.yaml --max-preemptions 3")).exitCode, 0);
  assert.deepEqual([policyOf("mnist").maxPreemptions, policyOf("mnist").queue], [3, "default"]);
  const { stdout } = await gangway("get mnist -o yaml");
  const again = await gangway("submit - --max-preemptions 0", {
    stdin: stdout.replace("name: mnist\n", "name: again\n"),
  });
  assert.equal(again.exitCode, 0, again.stderr);
  assert.equal(policyOf("again").maxPreemptions, 0);
  const { exitCode, stderr } = await gangway("submit job.yaml --max-preemptions few");
  assert.equal(exitCode, 2);
  assert.match(stderr, /a whole number from 0 to 2147483647/);
});

test("a job with a priority class can be submitted again as get prints it", async (t) => {
  const { gangway, store } = await served(t);
  await gangway("priority-class create patient --value 50 --preemption never");
  await gangway("submit job.yaml --priority-class patient");
  const { stdout } = await gangway("get mnist -o yaml");
  const again = await gangway("submit -", { stdin: stdout.replace("name: mnist\n", "name: again\n") });
  assert.equal(again.exitCode, 0, again.stderr);
  const { priority, priorityClassName, preemptionPolicy } = store.jobs.get("default/again")!.job.spec;
  assert.deepEqual([priority, priorityClassName, preemptionPolicy], [50, "patient", "NEVER"]);
});
