/** A field of a CreateJobRequest, as the service names it: `job.spec.replica_specs[Master].template.spec`. */
const REQUEST_PATH = /\bjob\.(spec|metadata)((?:\.[\w-]+|\[[^\]\s]*\])*)/g;
/** From these members on, names are those of the manifest already. */
const VERBATIM = /\.(?:template|inputs|labels|annotations|kind_spec)\b/;

const MANIFEST_PATH = /\bspec((?:\.[A-Za-z][\w-]*)+)/g;

/**
 * Returns a function that names fields of a spec in a text by where their values come from, such as an annotation. The
 * longest member that has a source counts.
 */
export function sourceSpeller(sources: ReadonlyMap<string, string>): (text: string) => string {
  return (text) =>
    text.replaceAll(MANIFEST_PATH, (path, members: string) => placeOf(members.slice(1), sources) ?? path);
}

/** Where a member has its value from. Undefined: its own place. */
function placeOf(member: string, sources: ReadonlyMap<string, string>): string | undefined {
  for (let end = member.length; end > 0; end = member.lastIndexOf(".", end - 1)) {
    const source = sources.get(member.slice(0, end));
    if (source !== undefined) return `${source}${member.slice(end)}`;
  }
  return undefined;
}

/**
 * Returns a function that renames the service's fields in a text to those of a manifest, such as
 * `spec.pytorchReplicaSpecs.Master.template`. `replicaSpecsField` is the manifest's member for the replica specs;
 * `liftsKindSpec`: the members of the kind spec are members of the spec itself. `sources`: by field of the spec in
 * Gangway's own form, the place in the manifest that its value comes from, where that is another.
 */
export function pathSpeller(manifest: {
  readonly replicaSpecsField: string;
  /** The replica type of a manifest that has only one, without its name. Omitted: replica types have names. */
  readonly onlyRole?: string;
  readonly liftsKindSpec: boolean;
  readonly sources: ReadonlyMap<string, string>;
}): (text: string) => string {
  const { replicaSpecsField, onlyRole, liftsKindSpec } = manifest;
  const bySource = sourceSpeller(manifest.sources);
  const spelled = (text: string) =>
    text.replaceAll(REQUEST_PATH, (_, root: string, path: string) => {
      const at = path.search(VERBATIM);
      const [ours, verbatim] = at < 0 ? [path, ""] : [path.slice(0, at), path.slice(at)];
      const camel = ours.replaceAll(/_([a-z])/g, (_part, letter: string) => letter.toUpperCase());
      const named = camel.replace(/^\.replicaSpecs(?:\[([^\]]*)\])?/, (_part, type?: string) =>
        type === undefined || type === onlyRole ? `.${replicaSpecsField}` : `.${replicaSpecsField}.${type}`,
      );
      const rest = verbatim.replace(/^\.kind_spec\b/, liftsKindSpec ? "" : ".kindSpec");
      return `${root}${named}${rest}`;
    });
  return (text) => bySource(spelled(text));
}
