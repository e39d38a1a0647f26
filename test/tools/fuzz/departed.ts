import { jsonOf, type PlannedCall } from "./plan.ts";

/** For so many calls after one that was left, its tokens may still be granted and given back. */
const CALLS = 300;

/** The tokens that calls named whose callers left before the answer: the service settles them when it comes to it. */
export class Departed {
  #tokens: readonly { readonly token: string; readonly number: number }[] = [];

  note(call: PlannedCall): void {
    const names = JSON.stringify(jsonOf(call)).matchAll(/"allocationToken":("(?:[^"\\]|\\.)*")/g);
    const tokens = [...names].map(([, text = '""']) => JSON.parse(text) as string);
    const recent = this.#tokens.filter(({ number }) => number > call.number - CALLS);
    this.#tokens = [...recent, ...tokens.map((token) => ({ token, number: call.number }))];
  }

  get tokens(): readonly string[] {
    return this.#tokens.map(({ token }) => token);
  }
}
