/** A note of the watchdog: the code that a step ran for a job blocked its worker, or filled its memory. */
export type StepNote = {
  readonly jobUid: string;
  /** The process, by a name that no other process ever has. */
  readonly worker: string;
  readonly atMs: number;
  readonly what: "blocked" | "filled";
  /** The plugin whose code ran. Null: Gangway's own. */
  readonly plugin: string | null;
  /** True: the worker had noted before the step that it takes this job alone. */
  readonly alone: boolean;
  /** True: the worker has ended without a hand-over of its buckets, so that the step never ended. */
  readonly ended: boolean;
};

/** Why a job is set aside. `reason` is that of its condition and its event. */
export type Blame = { readonly reason: "BlocksWorkers" | "FillsWorkers"; readonly message: string };
