import assert from "node:assert/strict";
import { test } from "node:test";
import { NotInVain } from "../not-in-vain.ts";
import { Draw } from "../random-world.ts";
import { ALL_STRATEGIES, playToRest, type RandomRest, RestFleet, randomRest } from "../rest-world.ts";

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 1_200);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);

const KINDS: Readonly<Record<string, RandomRest>> = {
  "one flavor": { strategies: ALL_STRATEGIES, flavorsMax: 1, elastic: false, gangsMax: 8 },
  "up to three flavors and elastic gangs": { strategies: ALL_STRATEGIES, flavorsMax: 3, elastic: true, gangsMax: 8 },
  "gangs of several types, and up to three flavors": {
    ...{ strategies: ALL_STRATEGIES, flavorsMax: 3, elastic: true, gangsMax: 8 },
    heads: true,
  },
};

for (const [name, of] of Object.entries(KINDS)) {
  test(`with ${name}: with the clock running, no set of running members comes twice in a settled moment`, (context) => {
    const met = { preempted: 0, shrunk: 0, most: 0 };
    for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
      const world = randomRest(new Draw(seed), of);
      const fleet = new RestFleet(world, { drainRounds: seed % 3 });
      let arrived = 0;
      for (const wave of world.waves) {
        for (const gang of wave) fleet.submit(gang);
        arrived += wave.length;
        const law = new NotInVain(fleet, `seed ${seed}`);
        const { fault, preempted, shrunk, moments } = playToRest(fleet, law.see);
        law.end();
        assert.equal(fault, null, `seed ${seed}:\n${moments.join("\n")}`);
        // Growth counts apart.
        assert.ok(preempted <= arrived ** 2, `seed ${seed}: ${preempted} preemptions of ${arrived} gangs`);
        met.preempted += preempted;
        met.shrunk += shrunk;
        met.most = Math.max(met.most, preempted);
      }
    }
    context.diagnostic(
      `${met.preempted} preemptions since the last arrival in ${WORLDS} worlds, at most ${met.most} in one; ` +
        `elastic gangs gave up members ${met.shrunk} times`,
    );
    assert.ok(met.preempted > WORLDS / 20, `${met.preempted} preemptions`);
    if (of.elastic) assert.ok(met.shrunk > WORLDS / 100, `${met.shrunk} times that members were given up`);
  });
}
