import assert from "node:assert/strict";
import { test } from "node:test";
import { NotInVain } from "./not-in-vain.ts";
import { Draw } from "./random-world.ts";
import { ALL_STRATEGIES, playToRest, type RandomRest, RestFleet, randomRest, randomRooms } from "./rest-world.ts";

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 200);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);

/** So often the same gangs may run again until a world is at rest. */
const TURNS_MAX = 3;

const MANY = { strategies: ALL_STRATEGIES, gangsMax: 12, priorityMax: 3 };
const KINDS: Readonly<Record<string, RandomRest>> = {
  "one flavor": { ...MANY, flavorsMax: 1, elastic: false },
  "up to three flavors and elastic gangs": { ...MANY, flavorsMax: 3, elastic: true },
  "gangs of several types, and up to three flavors": { ...MANY, flavorsMax: 3, elastic: true, heads: true },
};

for (const [name, of] of Object.entries(KINDS)) {
  for (const [where, hasRooms] of Object.entries({ "room for everything": false, "little room": true })) {
    test(`with ${name} and ${where}: a nominee runs where its victims ran, and turns end`, (context) => {
      const met = { nominees: 0, passed: 0 };
      for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
        const draw = new Draw(seed);
        const world = randomRest(draw, of);
        const rooms = hasRooms ? { rooms: randomRooms(draw, world) } : {};
        // Some victims leave much later than others.
        const fleet = new RestFleet(world, { drainRounds: seed % 4 === 3 ? () => draw.upTo(4) : seed % 3, ...rooms });
        for (const wave of world.waves) {
          for (const gang of wave) fleet.submit(gang);
          const law = new NotInVain(fleet, `seed ${seed}`);
          let { fault } = playToRest(fleet, law.see);
          // A gang may take back once what it gave: the same gangs may run again, and then the world comes to rest.
          for (let turns = 0; fault !== null && turns < TURNS_MAX; turns++) ({ fault } = playToRest(fleet, law.see));
          assert.equal(fault, null, `seed ${seed}`);
          law.end();
          met.nominees += law.met.nominees;
          met.passed += law.met.passed;
        }
      }
      context.diagnostic(`${met.nominees} nominees started, and ${met.passed} were passed, in ${WORLDS} worlds`);
      assert.ok(met.nominees > WORLDS / 10, JSON.stringify(met));
    });
  }
}
