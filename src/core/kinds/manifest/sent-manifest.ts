import type { FieldNote, SentSpec } from "../../job/request/sent.ts";

/** The metadata that a manifest may give a job. */
export type SentMetadata = {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** A job as a manifest says it. */
export type SentManifest = {
  readonly metadata: SentMetadata;
  readonly spec: SentSpec;
  /**
   * By field of the spec, such as `priority` or `kindSpec`: the member of the manifest that its value comes from, if
   * that is another. Fields below it are below that member, unless they have an entry of their own.
   */
  readonly sources: ReadonlyMap<string, string>;
  /** What was taken from members of other systems. */
  readonly notes: readonly FieldNote[];
  /** What was changed or ignored. */
  readonly warnings: readonly FieldNote[];
};
