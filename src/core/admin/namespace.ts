export type NamespaceRecord = {
  readonly name: string;
  readonly project: string;
  readonly defaultQueue: string;
  readonly version: number;
  readonly createTimeMs: number;
};

/** The part of a namespace that administrators set. */
export type NamespaceSettings = Pick<NamespaceRecord, "name" | "project" | "defaultQueue">;
