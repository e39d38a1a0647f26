import { type Proxy as FaultyProxy, startProxy } from "../../cluster/harness.ts";
import { type ControlPlane, startControlPlane } from "../../kube/control-plane.ts";
import { TRAINING_STAGES } from "../../kube/stages.ts";
import { addNodes } from "../../kube/subject.ts";

export const GPU = "nvidia.com/gpu";
export const PRODUCT = "nvidia.com/gpu.product";
const TOKEN = "admin";

/** A real API server behind a proxy that loses packets, slows writes down, and measures creates of pods. */
export class FaultyPlane {
  readonly name: string;
  /** How long creates of pods took, in milliseconds, since this was emptied last. */
  createMs: number[] = [];
  isDead = false;
  readonly #plane: ControlPlane;
  #proxy: FaultyProxy | null = null;
  #hole: PromiseWithResolvers<void> | null = null;
  #writeDelayMs = 0;

  private constructor(name: string, plane: ControlPlane) {
    this.name = name;
    this.#plane = plane;
  }

  static async start(name: string, of: { readonly nodes: number; readonly gpus: number }): Promise<FaultyPlane> {
    const plane = await startControlPlane({ stages: TRAINING_STAGES });
    const allocatable = { cpu: "64", memory: "256Gi", pods: "110", [GPU]: String(of.gpus) };
    const nodes = Array.from({ length: of.nodes }, (_, at) => `${name}-${String(at).padStart(3, "0")}`);
    await addNodes(
      plane,
      nodes.map((node) => ({ name: node, labels: { [PRODUCT]: "h100" }, allocatable })),
    );
    const faulty = new FaultyPlane(name, plane);
    faulty.#proxy = await startProxy(plane.url, (asked) => faulty.#treat(asked), {
      certificate: plane.certificate,
      token: TOKEN,
      onAnswered: ({ method, path }, tookMs) => {
        if (method === "POST" && path.endsWith("/pods")) faulty.createMs.push(tookMs);
      },
    });
    return faulty;
  }

  get kubeconfig(): string {
    return this.#proxy?.kubeconfig ?? "";
  }

  /** Calls past the proxy, as somebody beside the cluster does. */
  get client(): ControlPlane["client"] {
    return this.#plane.client;
  }

  /** Packets vanish from now on: no call is answered, and watches end. */
  blackHole(): void {
    this.#hole = Promise.withResolvers();
    this.#proxy?.cutAll();
  }

  answerAgain(): void {
    this.#hole?.resolve();
    this.#hole = null;
    this.#proxy?.cutAll();
  }

  slowWrites(ms: number): void {
    this.#writeDelayMs = ms;
  }

  /** The cluster is gone for good. */
  async die(): Promise<void> {
    this.isDead = true;
    this.#proxy?.cutAll();
    await this.#plane.stop();
  }

  async stop(): Promise<void> {
    this.#hole?.resolve();
    await this.#proxy?.close();
    if (!this.isDead) await this.#plane.stop();
  }

  async #treat({ method }: { readonly method: string }): Promise<"pass" | "cut"> {
    if (this.#hole !== null) {
      await this.#hole.promise;
      return "cut";
    }
    if (this.isDead) return "cut";
    if (method !== "GET" && this.#writeDelayMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, this.#writeDelayMs));
    }
    return "pass";
  }
}
