/**
 * The contract of the cluster adapter with any API server. The same tests run on the simulated cluster and on real
 * ones.
 */
import { after, before, suite, test } from "node:test";
import { capacity } from "./adapter/capacity.ts";
import { claims } from "./adapter/claims.ts";
import { customResources, podGroups } from "./adapter/custom-resources.ts";
import { deletion } from "./adapter/deletion.ts";
import { ownership } from "./adapter/ownership.ts";
import { refusals } from "./adapter/refusals.ts";
import { Scene } from "./adapter/scene.ts";
import { lists, watches } from "./adapter/watches.ts";
import type { Subject } from "./subject.ts";

/** Registers the whole suite for one kind of server. */
export function adapterSuite(name: string, start: () => Promise<Subject>): void {
  suite(`the cluster adapter on ${name}`, () => {
    const of = new Scene(start);
    before(() => of.open());
    after(() => of.close());
    const group = customResources(of);
    podGroups(of);
    claims(of);
    ownership(of);
    deletion(of);
    refusals(of);
    lists(of);
    watches(of);
    capacity(of);
    // Last: a garbage collector looks for new kinds every half a minute only.
    test("an object of a defined kind is collected with its anchor", () => group.isCollected());
  });
}
