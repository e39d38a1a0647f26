import type { PlanGang } from "../plan-gang.ts";
import { type AskShape, shapeOf } from "./ask-shape.ts";

/** The shapes of the asks that gangs have, each made once, and how many gangs have each. */
export class AskShapes {
  readonly #all = new Map<string, { readonly shape: AskShape; gangs: number }>();

  /** The shape of a gang that comes. */
  add({ askHash, ask }: Pick<PlanGang, "askHash" | "ask">): AskShape {
    const known = this.#all.get(askHash) ?? { shape: shapeOf(askHash, ask), gangs: 0 };
    known.gangs += 1;
    this.#all.set(askHash, known);
    return known.shape;
  }

  /** Notes that a gang has gone. */
  drop({ hash }: Pick<AskShape, "hash">): void {
    const known = this.#all.get(hash);
    if (known === undefined) return;
    known.gangs -= 1;
    if (known.gangs === 0) this.#all.delete(hash);
  }
}
