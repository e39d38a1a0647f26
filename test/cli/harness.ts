import { NO_SECURITY } from "../../src/cli/auth/security.ts";
import { runCli } from "../../src/cli/cli.ts";
import type { CliDeps, PathEntry, UpOptions } from "../../src/cli/shell/deps.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OWN_KINDS } from "../support/kinds.ts";

export type Ran = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

export type World = Partial<Omit<CliDeps, "stdout" | "stderr">> & {
  /** Text by path. Paths with slashes are in folders. */
  readonly files?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Called with each text that the command writes. */
  readonly onOutput?: (text: string) => void;
};

/** Runs a command line with fake streams and files, and returns its output. */
export async function run(argv: readonly string[], world: World = {}): Promise<Ran> {
  const { files = {}, stdin = "", onOutput = () => {}, ...overrides } = world;
  const written = { stdout: "", stderr: "" };
  const write = (stream: keyof typeof written) => (text: string) => {
    written[stream] += text;
    onOutput(text);
  };
  const deps: CliDeps = {
    stdout: write("stdout"),
    stderr: write("stderr"),
    readStdin: async () => stdin,
    readFile: async (path) => files[path] ?? Promise.reject(new Error(`no file ${path}`)),
    lookUp: async (path) => lookUp(files, path),
    isTty: false,
    columns: 80,
    rows: 24,
    color: false,
    clock: systemClock(),
    kinds: async () => OWN_KINDS,
    version: "1.2.3",
    address: undefined,
    namespace: undefined,
    security: NO_SECURITY,
    configFile: { path: "config.yaml", read: async () => files["config.yaml"] ?? null, write: async () => {} },
    writePrivateFile: () => Promise.reject(new Error("no file is written here")),
    removeFile: () => Promise.reject(new Error("no file is removed here")),
    signal: new AbortController().signal,
    startProgram: () => Promise.reject(new Error("no program is started here")) as never,
    openEditor: () => Promise.reject(new Error("no editor is opened here")),
    listen: () => {},
    takeSignals: () => () => {},
    up: async (_options: UpOptions) => 0,
    serve: async () => 0,
    migrate: async () => ({ kind: "notConfigured" }),
    ...overrides,
  };
  return { exitCode: await runCli(argv, deps), ...written };
}

function lookUp(files: Readonly<Record<string, string>>, path: string): PathEntry | null {
  if (path in files) return { kind: "file" };
  const prefix = `${path.replace(/\/+$/, "")}/`;
  const names = Object.keys(files)
    .filter((file) => file.startsWith(prefix))
    .map((file) => file.slice(prefix.length));
  return names.length === 0 ? null : { kind: "directory", names };
}

/** A valid manifest, as YAML. */
export function pytorchManifest(name: string, members = ""): string {
  return `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ${name}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: example.com/train}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: example.com/train}]}}}
${members}`;
}
