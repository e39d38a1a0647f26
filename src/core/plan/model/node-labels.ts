export type NodeLabels = Readonly<Record<string, string>>;
