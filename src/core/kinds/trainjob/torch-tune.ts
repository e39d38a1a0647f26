/** The command of torchtune, whose recipe follows from the nodes, the GPUs and the model of a runtime. */
import type { FieldError } from "../../job/request/sent.ts";
import type { TrainJobSpec } from "./train-job-spec.ts";

const ENTRYPOINT = ["tune", "run"];
const MODELS = ["llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"];
/** The only model that is trained on several nodes. */
const MULTI_NODE_MODEL = "llama3_3/70B";
/** Settings that the runtime makes. */
const OF_RUNTIME = ["output_dir", "tokenizer.path", "tokenizer.merges_file", "checkpointer.checkpoint_dir"];

export function isTorchTune({ trainer }: TrainJobSpec): boolean {
  const { command = [] } = trainer ?? {};
  return command.length === ENTRYPOINT.length && command.every((word, at) => word === ENTRYPOINT[at]);
}

type Tuning = {
  readonly numNodes: number;
  readonly gpus: number;
  readonly processes: number | "auto";
  readonly runtimeCommand: readonly string[];
  /** Where the processes find each other. */
  readonly endpoint: string;
};

/** Source: `getRecipeAndConfig` and `extractOverridesFromRuntime` of Trainer. */
export function torchTuneCommand({ runtime, trainer }: TrainJobSpec, of: Tuning): readonly string[] {
  const { numNodes, gpus, processes, runtimeCommand, endpoint } = of;
  const isDistributed = numNodes > 1 || (processes === "auto" ? gpus > 1 : processes > 1);
  const { recipe, config } = recipeOf(trainer?.args ?? [], { numNodes, isOne: processes === 1 || gpus === 1 });
  return [
    ...ENTRYPOINT,
    ...(isDistributed ? [`--rdzv_endpoint=${endpoint}`] : []),
    recipe,
    "--config",
    `${modelOf(runtime.name)}${config}`,
    ...runtimeCommand.filter((word) => OF_RUNTIME.includes(keyOf(word))),
  ];
}

function recipeOf(
  args: readonly string[],
  { numNodes, isOne }: { readonly numNodes: number; readonly isOne: boolean },
): { readonly recipe: string; readonly config: string } {
  if (numNodes > 1) return { recipe: "full_finetune_distributed", config: "_full_multinode" };
  const [devices, suffix] = isOne ? ["single_device", "_single_device"] : ["distributed", ""];
  if (isQuantized(args)) return { recipe: `lora_finetune_${devices}`, config: `_qlora${suffix}` };
  if (usesLora(args)) return { recipe: `lora_finetune_${devices}`, config: `_lora${suffix}` };
  return { recipe: `full_finetune_${devices}`, config: `_full${suffix}` };
}

function usesLora(args: readonly string[]): boolean {
  return args.some((arg) => arg.includes("model.lora_attn_modules"));
}

function isQuantized(args: readonly string[]): boolean {
  return !isOn(args, "model.use_dora") && isOn(args, "model.quantize_base");
}

function isOn(args: readonly string[], name: string): boolean {
  return args.some((arg) => {
    const at = arg.indexOf("=");
    return (
      at >= 0 &&
      arg.slice(0, at).includes(name) &&
      arg
        .slice(at + 1)
        .trim()
        .toLowerCase() === "true"
    );
  });
}

function keyOf(word: string): string {
  return word.split("=", 1)[0] ?? "";
}

/** `torchtune-llama3.2-1b` is for the model `llama3_2/1B`. Empty: the name says none. */
function modelOf(runtimeName: string): string {
  const [, family = "", size = "", ...more] = runtimeName.split("-");
  return size === "" || more.length > 0 ? "" : `${family.replaceAll(".", "_")}/${size.toUpperCase()}`;
}

/** What torchtune cannot do with a TrainJob. Source: `validateTorchTune` of Trainer. */
export function torchTuneErrors(trainJob: TrainJobSpec): readonly FieldError[] {
  if (!isTorchTune(trainJob)) return [];
  const { runtime, trainer } = trainJob;
  const { args = [], numNodes = 1 } = trainer ?? {};
  const model = modelOf(runtime.name);
  const errors: FieldError[] = [];
  if (!MODELS.includes(model)) {
    errors.push({
      path: "spec.runtimeRef.name",
      message: `must name a model that torchtune has: ${MODELS.join(", ")}`,
    });
  }
  if (numNodes > 1 && model !== MULTI_NODE_MODEL) {
    errors.push({ path: "spec.trainer.numNodes", message: `must be 1 for the model ${model.slice(0, 63)}` });
  }
  if (numNodes > 1 && (usesLora(args) || isQuantized(args))) {
    errors.push({ path: "spec.trainer.numNodes", message: "must be 1 with LoRA" });
  }
  const set = args.findIndex((arg) => OF_RUNTIME.includes(keyOf(arg)));
  if (set >= 0) errors.push({ path: `spec.trainer.args[${set}]`, message: "must be omitted: the runtime sets it" });
  return errors;
}
