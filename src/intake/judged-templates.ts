/**
 * Judges the templates of jobs and the pods that they make. Researchers submit the same templates again and again, so
 * jobs that differ in their names alone are judged once. Sweeps submit templates that differ in commands, arguments and
 * values of variables: of these, only placeholders are judged.
 */
import { serialize } from "node:v8";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { OWN_ENTRY } from "../core/kinds/registry.ts";
import { type HashedAsk, hashedAsk } from "../core/plan/model/ask.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { apartFromTexts } from "../core/pods/template-texts.ts";
import { charsLeft } from "../runtime/chars-left.ts";
import { checkTemplates, type ShapedReplicas, shapedAlike } from "./check-templates.ts";
import { newPodNotes } from "./judge-pods.ts";
import { draftJob, type ShapedTemplates } from "./new-job.ts";
import type { IntakeRules } from "./ports.ts";

export type JudgedTemplates = {
  /** In the templates as they were sent. */
  readonly violations: readonly FieldNote[];
  readonly warnings: readonly FieldNote[];
  /** The errors for which API servers would refuse the pods. */
  readonly pods: readonly FieldNote[];
  /** The replica types whose templates are too large to be checked any further. */
  readonly tooLarge: ReadonlySet<string>;
  /** Null: no such kind is served. */
  readonly made: MadeOfTemplates | null;
};

/** The parts of a record that are made of templates. Complete if the job is valid. */
export type MadeOfTemplates = {
  readonly templates: ShapedTemplates;
  readonly ask: () => HashedAsk;
};

/** The most judgements that are kept, and the most characters of the content of each: together 16 MiB. */
const KEPT_MAX = 256;
const CONTENT_CHARS_MAX = 65_536;

/** A judgement of templates with these texts. */
type Kept = {
  readonly texts: string;
  readonly judged: JudgedTemplates;
  /** The same is judged of templates with other texts, unless their placeholders are wrong. */
  readonly isOfAllTexts: boolean;
};

/** Judges templates, and keeps the judgements of jobs in which nothing is wrong. */
export class TemplateJudge {
  /** By what judgements depend on. The latest used last. */
  readonly #kept = new Map<string, Kept>();
  #podConfig: PodConfig | null = null;

  /** `named`: nothing is wrong with the names that the job and its pods have. */
  judge(sent: SentJob, rules: IntakeRules, named: boolean): JudgedTemplates {
    const { kinds, podConfig } = rules;
    // A kind from outside may look at the name.
    if (!named || kinds.entryOf(sent.spec.kind) !== OWN_ENTRY) return judge(sent, rules).judged;
    if (this.#podConfig !== podConfig) this.#kept.clear();
    this.#podConfig = podConfig;
    const content = charsLeft(sent, CONTENT_CHARS_MAX) < 0 ? null : contentOf(sent, rules);
    if (content === null || content.rest.length + content.texts.length > CONTENT_CHARS_MAX)
      return judge(sent, rules).judged;
    const known = this.#kept.get(content.rest);
    this.#kept.delete(content.rest);
    const found = known === undefined ? judge(sent, rules) : judgeLike(known, sent, { rules, texts: content.texts });
    const { violations, pods } = found.judged;
    if (violations.length > 0 || pods.length > 0) return found.judged;
    this.#kept.set(content.rest, { ...found, texts: content.texts });
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value ?? "");
    return found.judged;
  }
}

/**
 * Everything that a judgement depends on, but the settings of the platform, and apart from it the texts that it does
 * not depend on unless their placeholders are wrong.
 */
function contentOf(
  { name: _, generateName: __, ...content }: SentJob,
  { podPolicy, isNew }: IntakeRules,
): { readonly rest: string; readonly texts: string } {
  const texts: (readonly string[])[] = [];
  const replicaSpecs = Object.entries(content.spec.replicaSpecs).map(([role, { template, ...replica }]) => {
    if (template === undefined) return [role, replica];
    const apart = apartFromTexts(template);
    texts.push(apart.texts);
    return [role, { ...replica, template: apart.rest }];
  });
  // Unlike JSON, tells NaN from null.
  const rest = serialize([{ ...content, spec: { ...content.spec, replicaSpecs } }, podPolicy, isNew]);
  return { rest: rest.toString("latin1"), texts: JSON.stringify(texts) };
}

/** Judges templates that differ at most in their texts from others in which nothing is wrong. */
function judgeLike(
  known: Kept,
  sent: SentJob,
  { rules, texts }: { readonly rules: IntakeRules; readonly texts: string },
): Omit<Kept, "texts"> {
  if (known.texts === texts) return known;
  const shaped = known.isOfAllTexts ? shapedAlike(sent, rules) : null;
  if (shaped === null || known.judged.made === null) return judge(sent, rules);
  const made = { ...known.judged.made, templates: templatesOf(sent, rules, shaped) };
  return { judged: { ...known.judged, made }, isOfAllTexts: true };
}

function judge(sent: SentJob, rules: IntakeRules): Omit<Kept, "texts"> {
  const { kinds } = rules;
  const { violations, warnings, shaped, tooLarge, arePlaceholdersNoted } = checkTemplates(sent, rules);
  const kind = kinds.kindOf(sent.spec.kind);
  const isOfAllTexts = !arePlaceholdersNoted;
  if (kind === undefined) return { judged: { violations, warnings, pods: [], tooLarge, made: null }, isOfAllTexts };
  const templates = templatesOf(sent, rules, shaped);
  const draft = draftJob(sent, kind, templates);
  let asked: HashedAsk | null = null;
  const ask = () => (asked ??= hashedAsk(draft, kinds));
  const pods = newPodNotes(draft, kinds, shaped);
  return { judged: { violations, warnings, pods, tooLarge, made: { templates, ask } }, isOfAllTexts };
}

/** By replica type as the kind spells it. */
function templatesOf(sent: SentJob, { kinds }: IntakeRules, shaped: ShapedReplicas): ShapedTemplates {
  const kind = kinds.kindOf(sent.spec.kind);
  const replicas = Object.entries(shaped).map(([role, { sent: _, ...templates }]) => [
    kind?.roleName(role) ?? role,
    templates,
  ]);
  return Object.fromEntries(replicas);
}
